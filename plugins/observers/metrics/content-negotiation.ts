// Chooses the exposition format from a scraper's headers. If no accepted format is available, it is
// the oldest one, which every scraper supports.
import type { HeadersIn } from "tollgate/plugin";
import type { ExpositionFormat } from "./exposition.ts";

export interface ResponseFormat {
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
