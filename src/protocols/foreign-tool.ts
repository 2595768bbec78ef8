// A tool that another protocol declares, and that cannot be said in this one's words: refused by its name, with the reason.
import { fail } from "../model/error.ts";
import type { Tool } from "../model/request.ts";
import { object, text } from "./json.ts";
import { isTyped } from "./look/index.ts";

/** Its type tells where it runs: what the client runs itself lacks only a description of what it takes. */
export function refuseTool(tool: Tool): never {
  const type = text(object(tool.raw)?.["type"]) ?? tool.name;
  const name = type === tool.name ? tool.name : `${tool.name} (${type})`;
  return fail(
    "unsupported",
    isTyped(type)
      ? `The tool ${name} is described by its own protocol alone. Declare it as a function, with a schema of what it takes.`
      : `The tool ${name} runs at its own provider, or is known to it alone.`,
    { param: "tools", code: "unsupported_tool" },
  );
}
