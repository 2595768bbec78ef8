// Runs of server tools in a message: each begins with a block of its own. Reports count searches and fetches, and not every backend
// of this wire has them.
import type { Unit, Usage } from "../../model/usage.ts";
import type { JsonObject } from "../../model/values.ts";
import { isObject, text } from "../json.ts";

/** Units whose runs a message tells. */
export const COUNTED: readonly Unit[] = ["searches", "fetches", "code_sessions", "tool_runs"];

const CODE: ReadonlySet<string> = new Set([
  "code_execution",
  "bash_code_execution",
  "text_editor_code_execution",
]);
/** Billed by their tokens alone. */
const FREE: ReadonlySet<string> = new Set([
  "advisor",
  "tool_search_tool_bm25",
  "tool_search_tool_regex",
]);

export class ToolCounts {
  readonly #runs: { [unit in Unit]?: number } = {};
  #ranCode = false;
  /** Code that filters what a search found is not billed. */
  #filters = false;

  /** Called once for each block that begins. Whether it is a run of a tool. */
  block(block: JsonObject): boolean {
    if (block["type"] !== "server_tool_use") return false;
    const { caller } = block;
    const name = text(block["name"]) ?? "";
    this.#filters ||= isObject(caller) && (text(caller["type"]) ?? "").startsWith("code_execution");
    if (CODE.has(name)) this.#ranCode = true;
    else if (name === "web_search") this.#add("searches");
    else if (name === "web_fetch") this.#add("fetches");
    else if (!FREE.has(name)) this.#add("tool_runs");
    return true;
  }

  /** All code of a message runs in one container. */
  get usage(): Usage {
    return this.#ranCode && !this.#filters ? { ...this.#runs, code_sessions: 1 } : this.#runs;
  }

  /** The larger of this and what a report has. */
  with(reported: Usage): Usage {
    const all: { [unit in Unit]?: number | undefined } = { ...reported };
    const runs = this.usage;
    for (const unit in runs)
      all[unit as Unit] = Math.max(all[unit as Unit] ?? 0, runs[unit as Unit]!);
    return all;
  }

  #add(unit: Unit): void {
    this.#runs[unit] = (this.#runs[unit] ?? 0) + 1;
  }
}
