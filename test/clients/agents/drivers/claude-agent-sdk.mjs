// Runs one prompt through the Claude Agent SDK. Its tools are those of its bundled Claude Code
// program.
import { pathToFileURL } from "node:url";

const { DRIVEN, MODEL, PROMPT, STREAM } = process.env;
const { query } = await import(pathToFileURL(DRIVEN).href);
const options = {
  model: MODEL,
  permissionMode: "bypassPermissions",
  allowDangerouslySkipPermissions: true,
  settingSources: [],
  includePartialMessages: STREAM === "true",
  env: process.env,
};
let text = "";
for await (const message of query({ prompt: PROMPT, options })) {
  if (message.type === "stream_event") text += message.event.delta?.text ?? "";
  if (message.type !== "result") continue;
  if (message.is_error) {
    console.error(message.result ?? message.errors?.join("\n"));
    process.exit(1);
  }
  if (STREAM === "true" && !text.endsWith(message.result))
    throw new Error(`The events add up to another text: ${text}`);
  console.log(message.result);
}
