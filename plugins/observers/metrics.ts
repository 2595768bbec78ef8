// Serves GET /metrics on the admin listener: counts and durations in the Prometheus and OpenMetrics
// formats.
import { defineObserver, type HeadersIn } from "tollgate/plugin";
import { namingVersionsOf, NAMING_CHOICES } from "./genai-names.ts";
import { MetricsWriter } from "./metrics/metrics-writer.ts";
import { createSharedTally } from "./metrics/tally.ts";
import { type ExpositionFormat, Exposition } from "./metrics/exposition.ts";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

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
          "Labels whose cost is reported by value. The first 50 values of each label " +
          "are reported separately, and the others together",
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

// Chooses the exposition format from the headers of a scraper. If no accepted format is available,
// the oldest format is used, because every scraper supports it.

interface ResponseFormat {
  readonly form: ExpositionFormat;
  readonly type: string;
  readonly gzip: boolean;
}

const TEXT_FORMAT = { form: "text", type: "text/plain; version=0.0.4; charset=utf-8" } as const;
const openMetricsFormat = (version: string) => ({
  form: "openmetrics" as const,
  type: `application/openmetrics-text; version=${version}; charset=utf-8${version === "1.0.0" ? "; escaping=underscores" : ""}`,
});

/** Maximum number of media ranges to read from a header. */
const MAX_RANGES = 32;

interface AcceptRange {
  readonly media: string;
  readonly of: ReadonlyMap<string, string>;
  readonly q: number;
}

function parseAccept(header: string): readonly AcceptRange[] {
  return header
    .slice(0, 4_096)
    .split(",", MAX_RANGES)
    .map((one) => {
      const [media = "", ...more] = one.split(";").map((part) => part.trim().toLowerCase());
      const of = new Map(
        more.map((pair) => {
          const [name = "", value = ""] = pair.split("=");
          return [name.trim(), value.trim().replaceAll('"', "")] as const;
        }),
      );
      const q = Number(of.get("q") ?? 1);
      return { media, of, q: Number.isFinite(q) ? q : 0 };
    });
}

function formatForRange({ media, of }: AcceptRange): Omit<ResponseFormat, "gzip"> | undefined {
  const version = of.get("version");
  if (media === "application/openmetrics-text")
    return version === undefined || version === "1.0.0" || version === "0.0.1"
      ? openMetricsFormat(version ?? "1.0.0")
      : undefined;
  if (media === "text/plain")
    return version === undefined || version === "0.0.4" ? TEXT_FORMAT : undefined;
  return media === "*/*" || media === "text/*" ? TEXT_FORMAT : undefined;
}

const headerText = (header: string | string[] | undefined): string =>
  [header ?? []].flat().join(",");

export function negotiateFormat(headers: HeadersIn): ResponseFormat {
  let best: { offer: Omit<ResponseFormat, "gzip">; q: number } | undefined;
  for (const range of parseAccept(headerText(headers["accept"]))) {
    const offer = formatForRange(range);
    if (offer && range.q > (best?.q ?? 0)) best = { offer, q: range.q };
  }
  const gzip = parseAccept(headerText(headers["accept-encoding"])).some(
    ({ media, q }) => (media === "gzip" || media === "*") && q > 0,
  );
  return { ...(best?.offer ?? TEXT_FORMAT), gzip };
}

// Produces the text of a scrape: all counted metrics and all metrics that are read. The text is
// cached for 1 s, so that several scrapers cost no more than one.

const compressGzip = promisify(gzip);
const CACHE_TTL_MS = 1_000;

interface CachedScrape {
  readonly at: number;
  readonly text: Promise<Buffer>;
  zip: Promise<Buffer> | undefined;
}

class ScrapeCache {
  readonly #writer: MetricsWriter;
  readonly #kept = new Map<ExpositionFormat, CachedScrape>();

  constructor(all: MetricsWriter) {
    this.#writer = all;
  }

  async body(form: ExpositionFormat, compressed: boolean): Promise<Buffer> {
    const kept = this.#fresh(form);
    if (!compressed) return kept.text;
    return (kept.zip ??= kept.text.then((text) => compressGzip(text, { level: 1 })));
  }

  #fresh(form: ExpositionFormat): CachedScrape {
    const now = performance.now();
    const before = this.#kept.get(form);
    if (before && now - before.at < CACHE_TTL_MS) return before;
    const text = this.#write(form).then((written) => Buffer.from(written));
    // Failures are not cached.
    text.catch(() => this.#kept.delete(form));
    const kept: CachedScrape = { at: now, text, zip: undefined };
    this.#kept.set(form, kept);
    return kept;
  }

  async #write(form: ExpositionFormat): Promise<string> {
    const out = new Exposition(form);
    await this.#writer.writeTo(out);
    return out.finish();
  }
}
