// GET /metrics on the admin listener: counts and times of everything, for Prometheus and whatever reads its formats.
import { defineObserver } from "tollgate/plugin";
import { spellingsOf, SPELLINGS } from "./genai.ts";
import { wanted } from "./metrics/accept.ts";
import { Everything } from "./metrics/everything.ts";
import { following } from "./metrics/following.ts";
import { Scrape } from "./metrics/scrape.ts";

/** Different keys, and different values of a label. */
const MOST_VALUES = 50;

export default defineObserver({
  api: 1,
  name: "metrics",
  summary: "Counts and times for Prometheus, at /metrics of the admin listener",
  stability: "beta",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      gen_ai: {
        enum: SPELLINGS,
        default: "both",
        description:
          "Also under the names of the OpenTelemetry GenAI conventions: as they were released, as they are now, or both",
      },
      keys: {
        type: "boolean",
        default: false,
        description: "What each key costs, by its id; the first 50, the rest together",
      },
      labels: {
        type: "array",
        items: { type: "string", minLength: 1 },
        maxItems: 8,
        default: [],
        description: "Labels whose values' cost is told; the first 50 of each, the rest together",
      },
    },
  },
  setup({ gen_ai, keys, labels }, ctx) {
    const spellings = spellingsOf(gen_ai);
    const options = { genAi: spellings.length > 0, keys, labels, most: MOST_VALUES };
    const { tally, mine } = following(ctx, options);
    const scrape = new Scrape(new Everything(ctx, tally, spellings));
    return {
      seen: (batch) => mine().seen(batch),
      billed: (lines) => mine().billed(lines),
      told: (notice) => mine().told(notice),
      routes: [
        {
          method: "GET",
          path: "/metrics",
          role: "metrics",
          async serve({ headers }) {
            const { form, type, gzip } = wanted(headers);
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
