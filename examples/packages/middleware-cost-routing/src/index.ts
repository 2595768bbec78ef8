import { defineMiddleware, type Candidate, type Exclusion } from "tollgate/plugin";

/** Average response length of a model name. */
interface Average {
  output: number;
}

/** Expected output tokens before the first response. */
const INITIAL_OUTPUT = 500;
/** Weight of a new response in the average. */
const WEIGHT = 0.1;
/** Maximum number of model names to keep averages of. */
const MAX_NAMES = 10_000;

export default defineMiddleware({
  api: 1,
  name: "cost-routing",
  summary:
    "Tries the cheapest candidate first, estimated from the request and from earlier responses",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      within_percent: {
        type: "integer",
        minimum: 0,
        maximum: 1_000,
        default: 5,
        description:
          "Candidates within this percentage of the lowest cost count as equal and keep their order",
      },
      max_usd: {
        type: "number",
        exclusiveMinimum: 0,
        description: "Maximum estimated cost of a request, in US dollars. Default: no maximum",
      },
      unpriced: {
        enum: ["last", "never"],
        default: "last",
        description: "Whether candidates without a known price are tried last or never",
      },
    },
  },
  setup({ within_percent, max_usd, unpriced }, ctx) {
    const maxNano = max_usd === undefined ? undefined : BigInt(Math.round(max_usd * 1e9));
    const averages = ctx.shared("averages", () => new Map<string, Average>());
    return {
      route(list, x) {
        const limit = x.request.operation === "chat" ? x.request.output.maxTokens : undefined;
        const expected = averages.get(x.model)?.output ?? INITIAL_OUTPUT;
        const usage =
          x.operation === "chat" || x.operation === "completion"
            ? {
                input: x.inputSize.tokens,
                output: Math.round(Math.min(expected, limit ?? expected)),
              }
            : { input: x.inputSize.tokens };
        const priced = list.map((candidate) => ({
          candidate,
          cost: ctx.quoteCost(candidate, usage),
        }));
        const exclusions: Exclusion[] = [];
        const allowed: { candidate: Candidate; cost: bigint | null }[] = [];
        for (const one of priced) {
          const { candidate, cost } = one;
          if (cost === null && unpriced === "never") exclusions.push(excluded(candidate, UNPRICED));
          else if (cost !== null && maxNano !== undefined && cost > maxNano)
            exclusions.push(excluded(candidate, EXPENSIVE));
          else allowed.push(one);
        }
        const lowest = allowed.reduce<bigint | null>(
          (min, { cost }) => (cost === null || (min !== null && min <= cost) ? min : cost),
          null,
        );
        // Candidates near the lowest cost count as equal. Their order reflects prompt caches and weights, so it is kept.
        const threshold = lowest === null ? 0n : lowest + (lowest * BigInt(within_percent)) / 100n;
        const rank = (cost: bigint | null) =>
          cost !== null && cost <= threshold ? threshold : cost;
        const sorted = allowed.toSorted((a, b) => compareCosts(rank(a.cost), rank(b.cost)));
        return [...sorted.map(({ candidate }) => candidate), ...exclusions];
      },
      // Reads only token counts, never text.
      settle(x, { calls }) {
        const output = calls.at(-1)?.usage.output;
        if (x.model === undefined || output === undefined) return;
        const previous = averages.get(x.model)?.output ?? output;
        averages.delete(x.model);
        averages.set(x.model, { output: previous + (output - previous) * WEIGHT });
        if (averages.size > MAX_NAMES) averages.delete(averages.keys().next().value!);
      },
      commands: {
        expected: {
          summary: "Show the average response length in tokens by model name",
          writes: false,
          run: async () =>
            Object.fromEntries(
              [...averages].map(([name, { output }]) => [name, Math.round(output)]),
            ),
        },
      },
    };
  },
});

const EXPENSIVE = {
  code: "too_expensive",
  message: "would cost more than the maximum of a request",
};
const UNPRICED = { code: "no_price", message: "has no known price" };
const excluded = (candidate: Candidate, { code, message }: typeof EXPENSIVE): Exclusion => ({
  candidate,
  kind: "forbidden",
  code,
  message: `${candidate.id} ${message}.`,
});

const compareCosts = (a: bigint | null, b: bigint | null): number =>
  a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -1 : 1;
