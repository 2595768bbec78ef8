// Serves GET /metrics on the admin listener: counts and durations in the Prometheus and OpenMetrics
// formats.
import { defineObserver } from "tollgate/plugin";
import { namingVersionsOf, NAMING_CHOICES } from "./genai-names.ts";
import { negotiateFormat } from "./metrics/content-negotiation.ts";
import { MetricsWriter } from "./metrics/metrics-writer.ts";
import { createSharedTally } from "./metrics/shared-tally.ts";
import { ScrapeCache } from "./metrics/scrape.ts";

/** Maximum number of distinct keys, and of distinct values per label. */
const MAX_LABEL_VALUES = 50;

export default defineObserver({
  api: 1,
  name: "metrics",
  summary: "Serve Prometheus metrics at /metrics of the admin listener",
  stability: "beta",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      genai_names: {
        enum: NAMING_CHOICES,
        default: "both",
        description:
          "OpenTelemetry GenAI metric names to add: released (of the last released conventions), " +
          "latest, both, or off",
      },
      include_keys: {
        type: "boolean",
        default: false,
        description:
          "Whether to report the cost of each key, by key ID. The first 50 keys are " +
          "reported separately, the others together",
      },
      labels: {
        type: "array",
        items: { type: "string", minLength: 1 },
        maxItems: 8,
        default: [],
        description:
          "Labels whose cost is reported by value. The first 50 values of each label are " +
          "reported separately, the others together",
      },
    },
  },
  setup({ genai_names, include_keys: keys, labels }, ctx) {
    const spellings = namingVersionsOf(genai_names);
    const options = { genAi: spellings.length > 0, keys, labels, maxLabelValues: MAX_LABEL_VALUES };
    const { tally, activate } = createSharedTally(ctx, options);
    const scrape = new ScrapeCache(new MetricsWriter(ctx, tally, spellings));
    return {
      onRequests: (batch) => activate().onRequests(batch),
      onCharges: (lines) => activate().onCharges(lines),
      onEvent: (notice) => activate().onEvent(notice),
      routes: [
        {
          method: "GET",
          path: "/metrics",
          role: "metrics",
          async handle({ headers }) {
            const { form, type, gzip } = negotiateFormat(headers);
            return {
              status: 200,
              headers: {
                "content-type": type,
                vary: "accept, accept-encoding",
                ...(gzip && { "content-encoding": "gzip" }),
              },
              body: await scrape.body(form, gzip),
            };
          },
        },
      ],
    };
  },
});
