// Runs one prompt through an agent of Mastra, with a tool that writes a file.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { DRIVEN, GATEWAY_URL, GATEWAY_KEY, MODEL, PROMPT, STREAM } = process.env;
const { resolve } = createRequire(DRIVEN);
const load = (name) => import(pathToFileURL(resolve(name)).href);
const { Agent } = await load("@mastra/core/agent");
const { createTool } = await load("@mastra/core/tools");
const { z } = await load("zod");

const write = createTool({
  id: "write_file",
  description: "Write a text file",
  inputSchema: z.object({ path: z.string(), text: z.string() }),
  execute: async ({ path, text }) => {
    writeFileSync(path, text);
    return { written: path };
  },
});
const agent = new Agent({
  id: "writer",
  name: "writer",
  instructions: "You write files.",
  model: { id: `gateway/${MODEL}`, url: `${GATEWAY_URL}/v1`, apiKey: GATEWAY_KEY },
  tools: { write_file: write },
  maxRetries: 0,
});

try {
  if (STREAM === "true") {
    const { textStream, error } = await agent.stream(PROMPT);
    let text = "";
    for await (const part of textStream) text += part;
    if (error) throw error;
    console.log(text);
  } else console.log((await agent.generate(PROMPT)).text);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
