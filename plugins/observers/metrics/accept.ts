// Which form a scraper wants. One that asks for nothing that is here gets the oldest, which every reader knows.
import type { HeadersIn } from "tollgate/plugin";
import type { Form } from "./text.ts";

export interface Wanted {
  readonly form: Form;
  readonly type: string;
  readonly gzip: boolean;
}

const TEXT = { form: "text", type: "text/plain; version=0.0.4; charset=utf-8" } as const;
const openMetrics = (version: string) => ({
  form: "openmetrics" as const,
  type: `application/openmetrics-text; version=${version}; charset=utf-8${version === "1.0.0" ? "; escaping=underscores" : ""}`,
});

/** What is looked at of a header. */
const MOST_RANGES = 32;

interface Range {
  readonly media: string;
  readonly of: ReadonlyMap<string, string>;
  readonly q: number;
}

function ranges(header: string): readonly Range[] {
  return header
    .slice(0, 4_096)
    .split(",", MOST_RANGES)
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

function offered({ media, of }: Range): Omit<Wanted, "gzip"> | undefined {
  const version = of.get("version");
  if (media === "application/openmetrics-text")
    return version === undefined || version === "1.0.0" || version === "0.0.1"
      ? openMetrics(version ?? "1.0.0")
      : undefined;
  if (media === "text/plain")
    return version === undefined || version === "0.0.4" ? TEXT : undefined;
  return media === "*/*" || media === "text/*" ? TEXT : undefined;
}

const said = (header: string | string[] | undefined): string => [header ?? []].flat().join(",");

export function wanted(headers: HeadersIn): Wanted {
  let best: { offer: Omit<Wanted, "gzip">; q: number } | undefined;
  for (const range of ranges(said(headers["accept"]))) {
    const offer = offered(range);
    if (offer && range.q > (best?.q ?? 0)) best = { offer, q: range.q };
  }
  const gzip = ranges(said(headers["accept-encoding"])).some(
    ({ media, q }) => (media === "gzip" || media === "*") && q > 0,
  );
  return { ...(best?.offer ?? TEXT), gzip };
}
