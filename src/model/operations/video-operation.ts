import type { OperationSpec } from "./operation-spec.ts";

/** Seconds that are assumed if the request states none. */
const USUAL_SECONDS = 8;
const LENGTH = {
  param: "seconds",
  advice: "Set seconds to the length of the video.",
} as const;

/** Video generation. Used as `operation` by every video protocol. */
export const videoOperation: OperationSpec<"video"> = {
  name: "video",
  noun: "a video model",
  outputModality: "video",
  requiresCatalogEntry: true,
  generatesTokens: false,
  completeUnitSets: [["seconds_out"]],
  estimateUsage({ isWorstCase, n, exactUsage }) {
    const seconds = exactUsage.seconds_out;
    const unbounded = isWorstCase && seconds === undefined && { unbounded: LENGTH };
    return [[{ units: ["seconds_out"], count: n * (seconds ?? USUAL_SECONDS), ...unbounded }]];
  },
  estimateMissingUsage: ({ usage, expectedUsage }) => ({
    ...usage,
    seconds_out: usage.seconds_out ?? expectedUsage.seconds_out ?? USUAL_SECONDS,
  }),
  analyzeCost: ({ seconds, size }) => ({
    n: 1,
    size,
    ...(seconds != null && {
      exactUsage: { seconds_out: seconds },
      expectedUsage: { seconds_out: seconds },
    }),
  }),
  pricingHint: ['{ seconds_out: "…" }', "dollars per second"],
  priceExamples: [{ description: "a video of 8 seconds", usage: { seconds_out: 8 } }],
  sampleRequest: (model) => ({
    operation: "video",
    model,
    stream: false,
    prompt: "A sunrise over the sea",
    seconds: 4,
    size: "1280x720",
    rest: {},
    ext: {},
  }),
};
