import { defineMiddleware, type Candidate, type Exclusion } from "tollgate/plugin";

/** About how many tokens an answer has, where the client sets no bound. */
const ANSWER = 1_000;

export default defineMiddleware({
  api: 1,
  name: "acme",
  summary: "Asks what costs least first, and nothing that costs too much",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      most_usd: {
        type: "number",
        exclusiveMinimum: 0,
        default: 1,
        description: "What one request may cost at a candidate, in dollars",
      },
    },
  },
  setup({ most_usd }, ctx) {
    const most = BigInt(Math.round(most_usd * 1e9));
    return {
      route(list, x) {
        const usage = { input: x.inputSize.tokens, output: ANSWER };
        const priced = list.map((candidate) => ({
          candidate,
          cost: ctx.quoteCost(candidate, usage),
        }));
        const dear: Exclusion[] = [];
        const fine: { candidate: Candidate; cost: bigint | null }[] = [];
        for (const each of priced)
          if (each.cost !== null && each.cost > most)
            dear.push({
              candidate: each.candidate,
              kind: "forbidden",
              code: "too_dear",
              message: `${each.candidate.id} costs more than ${most_usd} USD for such a request.`,
            });
          else fine.push(each);
        // What has no price comes last, in the order in which it came.
        fine.sort((a, b) => order(a.cost, b.cost));
        return [...fine.map(({ candidate }) => candidate), ...dear];
      },
    };
  },
});

const order = (a: bigint | null, b: bigint | null): number =>
  a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -1 : 1;
