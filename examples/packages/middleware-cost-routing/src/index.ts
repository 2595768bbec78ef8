import { defineMiddleware, type Candidate, type Exclusion } from "tollgate/plugin";

/** Of one name that clients ask for: about how long its answers are. */
interface Habit {
  output: number;
}

/** Where nothing has been answered yet. */
const FIRST = 500;
/** How much one more answer changes what is expected. */
const WEIGHT = 0.1;
const NAMES = 10_000;

export default defineMiddleware({
  api: 1,
  name: "cost-routing",
  summary: "Asks first what costs least for this request, by what such answers have been like",
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
          "What costs at most so much more than the cheapest is as good: the order of gateway.yaml stands",
      },
      most_usd: {
        type: "number",
        exclusiveMinimum: 0,
        description: "What costs more for one request is not asked",
      },
      unpriced: {
        enum: ["last", "never"],
        default: "last",
        description: "Whether what has no known price is asked after the others, or not at all",
      },
    },
  },
  setup({ within_percent, most_usd, unpriced }, ctx) {
    const most = most_usd === undefined ? undefined : BigInt(Math.round(most_usd * 1e9));
    const habits = ctx.shared("habits", () => new Map<string, Habit>());
    return {
      route(list, x) {
        const bound = x.request.operation === "chat" ? x.request.output.maxTokens : undefined;
        const expected = habits.get(x.model)?.output ?? FIRST;
        const usage =
          x.operation === "chat" || x.operation === "completion"
            ? {
                input: x.inputSize.tokens,
                output: Math.round(Math.min(expected, bound ?? expected)),
              }
            : { input: x.inputSize.tokens };
        const priced = list.map((candidate) => ({
          candidate,
          cost: ctx.quoteCost(candidate, usage),
        }));
        const out: Exclusion[] = [];
        const fine: { candidate: Candidate; cost: bigint | null }[] = [];
        for (const one of priced) {
          const { candidate, cost } = one;
          if (cost === null && unpriced === "never") out.push(excluded(candidate, UNPRICED));
          else if (cost !== null && most !== undefined && cost > most)
            out.push(excluded(candidate, DEAR));
          else fine.push(one);
        }
        const least = fine.reduce<bigint | null>(
          (min, { cost }) => (cost === null || (min !== null && min <= cost) ? min : cost),
          null,
        );
        // Near the cheapest all count as one: whose prompt is cached where, and weights, are said by the order they came in.
        const near = least === null ? 0n : least + (least * BigInt(within_percent)) / 100n;
        const rank = (cost: bigint | null) => (cost !== null && cost <= near ? near : cost);
        const sorted = fine.toSorted((a, b) => order(rank(a.cost), rank(b.cost)));
        return [...sorted.map(({ candidate }) => candidate), ...out];
      },
      // Counts alone: nothing of what was said.
      settle(x, { calls }) {
        const output = calls.at(-1)?.usage.output;
        if (x.model === undefined || output === undefined) return;
        const before = habits.get(x.model)?.output ?? output;
        habits.delete(x.model);
        habits.set(x.model, { output: before + (output - before) * WEIGHT });
        if (habits.size > NAMES) habits.delete(habits.keys().next().value!);
      },
      commands: {
        expected: {
          summary: "About how many tokens an answer has, by the name that clients ask for",
          writes: false,
          run: async () =>
            Object.fromEntries([...habits].map(([name, { output }]) => [name, Math.round(output)])),
        },
      },
    };
  },
});

const DEAR = { code: "too_dear", message: "costs more than one request may" };
const UNPRICED = { code: "no_price", message: "has no known price" };
const excluded = (candidate: Candidate, { code, message }: typeof DEAR): Exclusion => ({
  candidate,
  kind: "forbidden",
  code,
  message: `${candidate.id} ${message}.`,
});

const order = (a: bigint | null, b: bigint | null): number =>
  a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -1 : 1;
