// examples/receipts.ts
import { defineMiddleware, fail } from "tollgate/plugin";

/** What became of a request, for the key that made it. */
interface Receipt {
  readonly key: string;
  readonly status: number;
  readonly model: string;
  /** In nano-dollars; null: a call of it has no known price. */
  readonly cost_nano: string | null;
}

export default defineMiddleware({
  api: 1,
  name: "receipts",
  summary: "Tells a client what one of its requests has cost",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      most: { type: "integer", minimum: 1, default: 10_000, description: "How many are kept" },
    },
  },
  setup({ most }, ctx) {
    // What the hook below leaves here, the routes read. It outlives a reload.
    const kept = ctx.shared("kept", () => new Map<string, Receipt>());
    // With several processes the request may have been another one's.
    const ask = ctx.createPeerQuery((id: string) => kept.get(id));
    return {
      settle(x, { status, calls }) {
        if (!x.identity || x.privacy !== "off" || calls.length === 0) return;
        const costs = calls.map(({ costNano }) => costNano);
        const cost = costs.reduce(
          (sum, each) => (sum === null || each === null ? null : sum + each),
          0n,
        );
        kept.set(x.id, {
          key: x.identity.id,
          status,
          model: x.model ?? "",
          cost_nano: cost === null ? null : String(cost),
        });
        for (const oldest of kept.keys()) {
          if (kept.size <= most) break;
          kept.delete(oldest);
        }
      },
      routes: [
        {
          // The admit hooks have found out whose key it is.
          listener: "public",
          method: "GET",
          path: "/v1/receipts/:id",
          async handle(x) {
            const id = x.params["id"] ?? "";
            const found = kept.get(id) ?? (await ask(id));
            if (found?.key !== x.identity?.id || !found)
              return fail("not_found", `There is no receipt ${id}.`);
            const { key: _, ...receipt } = found;
            return { status: 200, body: receipt };
          },
        },
        {
          // For operators: an admin token with the role viewer, or a higher one.
          method: "GET",
          path: "/receipts",
          role: "viewer",
          handle: () => ({ status: 200, body: { kept: kept.size } }),
        },
      ],
    };
  },
});
