// tollgate/protocols/codec: what any codec of a chat wire needs and should not write anew: arguments of calls that keep their
// digits, names that a wire allows, what a model takes of what is said about thinking, and what an upstream's error means.
// Pure. May import: model, plugin (types), and the tools of this floor.
export { parseExactJson, parseToolArguments } from "../tool-arguments.ts";
export { parseError, parseErrorBody } from "../failure/parse-error.ts";
export { toBase64 } from "../media-url.ts";
export { fitName } from "../tool-names.ts";
export {
  EFFORT_BUDGETS,
  effortForBudget,
  nearestEffort,
  supportedSampling,
} from "../reasoning-support.ts";
export { declareTool, rejectTool } from "../tool-declarations.ts";
