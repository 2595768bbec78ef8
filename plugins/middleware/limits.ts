// Limits of each key that has none of the same unit, and how much a budget reserves. A declaration: the store takes all limits and
// the reserve row in one step. The host counts a key's own limits.
import {
  defineMiddleware,
  LIMIT_SCHEMA,
  parseScopedLimit,
  type Identity,
  type Limit,
} from "tollgate/plugin";

export default defineMiddleware({
  api: 1,
  name: "limits",
  summary: "Rates and budgets",
  stability: "beta",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      limits: {
        type: "array",
        items: LIMIT_SCHEMA,
        description:
          "Limits of each key, as in requests=600/minute. A key that has a limit of the same unit keeps its own",
      },
      hold: {
        enum: ["hard", "expected", "soft"],
        default: "expected",
        description:
          "What a budget sets aside for a request: the worst case (and caps the answer at it), the usual, or nothing",
      },
    },
  },
  setup({ limits: texts = [], hold }) {
    const parsed = texts.map((text) => parseScopedLimit(text, ""));
    const limitsOf = (who: Identity): Limit[] =>
      parsed
        .filter(({ unit }) => !who.limits?.some((own) => own.unit === unit))
        .map((limit) => ({ ...limit, scope: `key:${who.id}` }));
    return {
      /** Before the body is read; the store counts exactly, over all processes, when the call is reserved. */
      admit(x) {
        if (!x.identity) return;
        for (const { unit, scope, max } of limitsOf(x.identity))
          if (unit === "concurrent") x.acquireSlot(scope, Number(max));
      },
      charge({ n, exchange: { identity } }) {
        if (!identity) return undefined;
        // A second attempt is the same request: it is not counted as one more.
        const limits = limitsOf(identity).filter(({ unit }) => n === 1 || unit !== "requests");
        return { limits, hold };
      },
    };
  },
});
