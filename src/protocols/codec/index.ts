// tollgate/protocols/codec: shared functions for codecs of chat protocols: exact tool call
// arguments, legal tool names, reasoning support, and provider errors. Pure: no I/O, no clock. May
// import: model, plugin (types), and the tools of this layer.
export { parseExactJson, parseToolArguments, fitName } from "../tool-calls.ts";
export { declareTool, rejectTool } from "../tool-declarations.ts";
export { parseError, parseErrorBody } from "../failure/parse-error.ts";
export { toBase64 } from "../media-url.ts";
export {
  EFFORT_BUDGETS,
  effortForBudget,
  nearestEffort,
  supportedSampling,
} from "../reasoning-support.ts";
