// examples/receipts.ts
import { defineMiddleware, fail } from "tollgate/plugin";

/** The result of a request, for the key that sent it. */
interface Receipt {
  readonly key: string;
  readonly status: number;
  readonly model: string;
  /** Cost in nano-dollars; null if the price of a call is unknown. */
  readonly cost_nano: string | null;
}

export default defineMiddleware({
  api: 1,
  name: "receipts",
  summary: "Returns the cost of a request to its client",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      max_receipts: {
        type: "integer",
        minimum: 1,
        default: 10_000,
        description: "Number of receipts to keep",
      },
    },
  },
  setup({ max_receipts }, ctx) {
    // Written by the hook, read by the routes. The map is kept across reloads.
    const receipts = ctx.shared("receipts", () => new Map<string, Receipt>());
    // With several workers, another process may have served the request.
    const askPeers = ctx.createPeerQuery("receipt", (id: string) => receipts.get(id));
    return {
      settle(x, { status, calls }) {
        if (!x.identity || x.privacy !== "off" || calls.length === 0) return;
        const costs = calls.map(({ costNano }) => costNano);
        const cost = costs.reduce(
          (sum, each) => (sum === null || each === null ? null : sum + each),
          0n,
        );
        receipts.set(x.id, {
          key: x.identity.id,
          status,
          model: x.model ?? "",
          cost_nano: cost === null ? null : String(cost),
        });
        for (const oldest of receipts.keys()) {
          if (receipts.size <= max_receipts) break;
          receipts.delete(oldest);
        }
      },
      routes: [
        {
          // The admit hooks have identified the key.
          listener: "public",
          method: "GET",
          path: "/v1/receipts/:id",
          async handle(x) {
            const id = x.params["id"] ?? "";
            const found = receipts.get(id) ?? (await askPeers(id));
            if (found?.key !== x.identity?.id || !found)
              return fail("not_found", `Receipt "${id}" not found.`);
            const { key: _, ...receipt } = found;
            return { status: 200, body: receipt };
          },
        },
        {
          // For operators: requires an admin token with the role viewer or a higher one.
          method: "GET",
          path: "/receipts",
          role: "viewer",
          handle: () => ({ status: 200, body: { receipts: receipts.size } }),
        },
      ],
    };
  },
});
