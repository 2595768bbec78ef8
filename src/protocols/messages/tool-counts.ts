// Runs of server tools in a message: each begins with a block of its own. Reports count searches and fetches, and not every backend
// of this wire has them.
import type { Unit, Usage } from "../../model/usage.ts";
import type { JsonObject } from "../../model/values.ts";
import { isObject, asText } from "../json-values.ts";

/** Units whose runs a message tells. */
export const COUNTED_TOOL_UNITS: readonly Unit[] = [
  "searches",
  "fetches",
  "code_sessions",
  "tool_runs",
];

const CODE: ReadonlySet<string> = new Set([
  "code_execution",
  "bash_code_execution",
  "text_editor_code_execution",
]);
/** Billed by their tokens alone. */
const UNBILLED_TOOLS: ReadonlySet<string> = new Set([
  "advisor",
  "tool_search_tool_bm25",
  "tool_search_tool_regex",
]);

export class MessagesToolCounts {
  readonly #runs: { [unit in Unit]?: number } = {};
  #ranCode = false;
  /** Code that filters what a search found is not billed. */
  #filters = false;

  /** Called once for each block that begins. Whether it adds to what is known to be billed. */
  block(block: JsonObject): boolean {
    if (block["type"] !== "server_tool_use") return false;
    const { caller } = block;
    const name = asText(block["name"]) ?? "";
    this.#filters ||=
      isObject(caller) && (asText(caller["type"]) ?? "").startsWith("code_execution");
    if (UNBILLED_TOOLS.has(name)) return false;
    // Whether it only filters is known at the end.
    if (CODE.has(name)) return !(this.#ranCode = true);
    return this.#add(UNITS.get(name) ?? "tool_runs");
  }

  /** Runs so far, and of those that a report has counted the larger number. */
  current(reported: Usage): Usage {
    return most(this.#runs, reported, Object.keys(this.#runs));
  }

  /** A report, with the runs that it does not have. All code of a message runs in one container. */
  final(reported: Usage): Usage {
    const code = this.#ranCode && !this.#filters && { code_sessions: 1 };
    const runs = { ...this.#runs, ...code };
    return { ...reported, ...most(runs, reported, Object.keys(runs)) };
  }

  #add(unit: Unit): true {
    this.#runs[unit] = (this.#runs[unit] ?? 0) + 1;
    return true;
  }
}

const UNITS: ReadonlyMap<string, Unit> = new Map([
  ["web_search", "searches"],
  ["web_fetch", "fetches"],
]);

const most = (a: Usage, b: Usage, units: readonly string[]): Usage =>
  Object.fromEntries(
    (units as readonly Unit[]).map((unit) => [unit, Math.max(a[unit] ?? 0, b[unit] ?? 0)]),
  );
