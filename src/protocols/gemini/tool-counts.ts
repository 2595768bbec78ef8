// Counts runs of tools that Google hosts. No usage report contains them. Grounding metadata
// contains the queries, and parts contain the code that ran.
import type { Unit, Usage } from "../../model/usage.ts";
import type { JsonObject } from "../../model/values.ts";
import { asList, asObject, asObjects, asText } from "../json-values.ts";

/** Tool units that can be counted from a response. */
export const COUNTED_TOOL_UNITS: readonly Unit[] = [
  "searches",
  "map_searches",
  "file_searches",
  "fetches",
  "code_sessions",
];

/** Maximum number of distinct queries. No response has more. */
const MAX_QUERIES = 1_000;

/**
 * Counts tool runs. Chunks repeat their grounding metadata, so each query of a candidate counts
 * once.
 */
export class GeminiToolCounts {
  readonly #queries = new Set<string>();
  readonly #fetched = new Set<string>();
  #grounded = false;
  #mapped = false;
  #filed = false;
  #ran = false;

  chunk(chunk: JsonObject): void {
    for (const candidate of asObjects(chunk["candidates"])) this.#candidate(candidate);
  }

  get usage(): Usage {
    const searches = Math.max(this.#queries.size, this.#grounded ? 1 : 0);
    return {
      ...(searches > 0 && { searches }),
      ...(this.#mapped && { map_searches: 1 }),
      ...(this.#filed && { file_searches: 1 }),
      ...(this.#fetched.size > 0 && { fetches: this.#fetched.size }),
      ...(this.#ran && { code_sessions: 1 }),
    };
  }

  #candidate(candidate: JsonObject): void {
    for (const part of asList(asObject(candidate["content"])?.["parts"]))
      this.#ran ||= asObject(asObject(part)?.["executableCode"]) !== undefined;
    const index = Number(candidate["index"] ?? 0);
    const pages = asObject(candidate["urlContextMetadata"]);
    for (const page of asObjects(pages?.["urlMetadata"]))
      remember(this.#fetched, `${index} ${asText(page["retrievedUrl"]) ?? ""}`);
    const grounding = asObject(candidate["groundingMetadata"]);
    if (!grounding) return;
    for (const name of ["webSearchQueries", "imageSearchQueries"])
      for (const query of asList(grounding[name]))
        remember(this.#queries, `${index} ${name} ${asText(query) ?? ""}`);
    // Results without a listed query still required a search.
    this.#grounded ||= asObject(grounding["searchEntryPoint"]) !== undefined;
    this.#mapped ||= grounding["googleMapsWidgetContextToken"] !== undefined;
    for (const found of asObjects(grounding["groundingChunks"])) {
      this.#grounded ||= asObject(found["web"]) !== undefined;
      this.#mapped ||= asObject(found["maps"]) !== undefined;
      this.#filed ||= asObject(found["retrievedContext"]) !== undefined;
    }
  }
}

function remember(seen: Set<string>, one: string): void {
  if (seen.size < MAX_QUERIES) seen.add(one.slice(0, 1_024));
}
