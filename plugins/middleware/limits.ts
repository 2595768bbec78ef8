// Declares limits for every key without a limit of the same unit, and the amount that a budget
// reserves. The store checks all limits and writes the reserve row in one step. The gateway
// enforces a key's own limits.
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
  summary: "Enforce rate limits and budgets",
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
          "Default limits per key, such as requests=600/minute. A key's own limit of the " +
          "same unit takes precedence",
      },
      hold: {
        enum: ["hard", "expected", "soft"],
        default: "expected",
        description:
          "Amount that a budget reserves per request. hard: the maximum cost, which also limits " +
          "the response. expected: the typical cost. soft: nothing",
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
      /**
       * Checks concurrency before the body is read. The store counts exactly, across all processes,
       * when the call is reserved.
       */
      admit(x) {
        if (!x.identity) return;
        for (const { unit, scope, max } of limitsOf(x.identity))
          if (unit === "concurrent") x.acquireSlot(scope, Number(max));
      },
      charge({ n, exchange: { identity } }) {
        if (!identity) return undefined;
        // A second attempt belongs to the same request, so it is not counted as another request.
        const limits = limitsOf(identity).filter(({ unit }) => n === 1 || unit !== "requests");
        return { limits, hold };
      },
    };
  },
});
