import { defineMiddleware, type Candidate, type Exclusion } from "tollgate/plugin";

/** Estimated number of tokens in a response. */
const ESTIMATED_OUTPUT = 1_000;

export default defineMiddleware({
  api: 1,
  name: "acme",
  summary: "Tries the cheapest candidate first and excludes expensive candidates",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      max_usd: {
        type: "number",
        exclusiveMinimum: 0,
        default: 1,
        description: "Maximum cost of a request at a candidate, in US dollars",
      },
    },
  },
  setup({ max_usd }, ctx) {
    const maxNano = BigInt(Math.round(max_usd * 1e9));
    return {
      route(list, x) {
        const usage = { input: x.inputSize.tokens, output: ESTIMATED_OUTPUT };
        const priced = list.map((candidate) => ({
          candidate,
          cost: ctx.quoteCost(candidate, usage),
        }));
        const excluded: Exclusion[] = [];
        const allowed: { candidate: Candidate; cost: bigint | null }[] = [];
        for (const each of priced)
          if (each.cost !== null && each.cost > maxNano)
            excluded.push({
              candidate: each.candidate,
              kind: "forbidden",
              code: "too_expensive",
              message: `${each.candidate.id} would cost more than ${max_usd} USD for this request.`,
            });
          else allowed.push(each);
        // Candidates without a known price come last, in their original order.
        allowed.sort((a, b) => compareCosts(a.cost, b.cost));
        return [...allowed.map(({ candidate }) => candidate), ...excluded];
      },
    };
  },
});

const compareCosts = (a: bigint | null, b: bigint | null): number =>
  a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -1 : 1;
