// How much to think, in the words that this model understands: a level, or a number of tokens, never both.
import { under } from "../../table.ts";
import { fail } from "../../../model/error.ts";
import type { ChatRequest, Reasoning } from "../../../model/request.ts";
import type { JsonObject } from "../../../model/values.ts";
import { BUDGETS, effortFor, nearest, reasonsOf } from "../../reasons.ts";
import { some } from "../../json.ts";
import { cameFrom } from "../words.ts";
import type { GeminiEncoding } from "./encoding.ts";

/** What an answer needs beside the thoughts that share its limit. */
const ROOM = 1024;

/** `thinkingConfig`; nothing where nothing was asked. Thoughts are told wherever they are asked for: silence looks like a dead line. */
export function thinkingTo(r: ChatRequest, e: GeminiEncoding): JsonObject | undefined {
  const own = cameFrom<JsonObject>(r.reasoning);
  if (own) return some(own);
  const { mode, effort, show } = r.reasoning;
  if (mode === "auto" && (show === undefined || show === "none")) return undefined;
  const off = mode === "off" || (mode === "effort" && effort === "none");
  if (e.with.thinking === "none" || reasonsOf(e.of.info).can === false) {
    if (!off) e.of.lose("reasoning", "dropped", "no_thinking");
    return undefined;
  }
  if (off) return switchedOff(e);
  const told = { includeThoughts: true };
  if (mode === "auto") return told;
  return e.with.thinking === "level"
    ? { ...told, thinkingLevel: levelTo(r.reasoning, e).toUpperCase() }
    : { ...told, thinkingBudget: budgetTo(r, e) };
}

function switchedOff(e: GeminiEncoding): JsonObject {
  if (e.with.thinking === "budget" && e.with.off) return { thinkingBudget: 0 };
  if (e.with.thinking === "level" && e.with.levels.includes("minimal")) {
    e.of.lose("reasoning", "approximated", "least_thinking");
    return { thinkingLevel: "MINIMAL" };
  }
  // Thinking all the same would be billed to a client that said no.
  return fail("unsupported", `${e.of.model} cannot answer without thinking.`, {
    param: "reasoning",
    code: "thinking_required",
  });
}

function levelTo(reasoning: Reasoning, e: GeminiEncoding): string {
  const { levels } = e.with;
  const asked = reasoning.effort ?? effortFor(reasoning.budget ?? ROOM);
  if (reasoning.effort === undefined)
    e.of.lose("reasoning.budget", "approximated", "budget_as_level");
  const said = nearest(asked, levels);
  if (reasoning.effort !== undefined && said !== asked)
    e.of.lose("reasoning.effort", "approximated");
  return said;
}

function budgetTo(r: ChatRequest, e: GeminiEncoding): number {
  const { mode, effort = "medium", budget } = r.reasoning;
  const [least, most] = e.with.budget;
  const fit = (tokens: number, cap: number) => Math.max(least, Math.min(tokens, cap));
  if (mode === "budget" && budget !== undefined) {
    const fits = fit(budget, most);
    if (fits !== budget) e.of.lose("reasoning.budget", "approximated");
    return fits;
  }
  e.of.lose("reasoning", "approximated", "effort_as_budget");
  const limit = r.output.maxTokens;
  return fit(
    under(BUDGETS, effort) ?? most,
    limit === undefined ? most : Math.min(most, limit - ROOM),
  );
}
