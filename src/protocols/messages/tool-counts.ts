// Counts runs of server tools in a message. Each run begins with its own block. Usage reports count
// only searches and fetches, and not all backends of this protocol report them.
import type { Unit, Usage } from "../../model/usage.ts";
import type { JsonObject } from "../../model/values.ts";
import { isObject, asText } from "../json-values.ts";

/** Units of tool runs that a message reveals. */
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
/** Tools that are billed only by their tokens. */
const UNBILLED_TOOLS: ReadonlySet<string> = new Set([
  "advisor",
  "tool_search_tool_bm25",
  "tool_search_tool_regex",
]);

export class MessagesToolCounts {
  readonly #runs: { [unit in Unit]?: number } = {};
  #ranCode = false;
  /** Whether code ran to filter search results, which is not billed. */
  #filters = false;

  /**
   * Called once for each block that begins. Returns whether the block changes the billed counts.
   */
  block(block: JsonObject): boolean {
    if (block["type"] !== "server_tool_use") return false;
    const { caller } = block;
    const name = asText(block["name"]) ?? "";
    this.#filters ||=
      isObject(caller) && (asText(caller["type"]) ?? "").startsWith("code_execution");
    if (UNBILLED_TOOLS.has(name)) return false;
    // Whether code only filters results is known at the end.
    if (CODE.has(name)) return !(this.#ranCode = true);
    return this.#add(UNITS.get(name) ?? "tool_runs");
  }

  /** Returns the runs so far. If a report has counted a unit too, the larger number is used. */
  current(reported: Usage): Usage {
    return most(this.#runs, reported, Object.keys(this.#runs));
  }

  /**
   * Returns a report with the runs that it lacks. All code in a message runs in one container, so
   * it counts as one session.
   */
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
