// One look at a body as it leaves for this wire: what it may cost, and what upstream would run or keep.
import type { Feature } from "../../model/facts.ts";
import type { Body, JsonObject } from "../../model/values.ts";
import type { Survey } from "../../plugin/protocol.ts";
import { hostedIn, spending } from "../spending.ts";
import { list, object, objects, snake, text } from "./words.ts";

/** Members of a part whose bytes are what is read. */
const WORDS: ReadonlySet<string> = new Set([
  "text",
  "thought",
  "thoughtSignature",
  "functionCall",
  "functionResponse",
  "executableCode",
  "codeExecutionResult",
]);

export function survey(body: Body): Survey {
  const fields = (object(body["generateContentRequest"]) ?? body) as JsonObject;
  const features = new Set<Feature>();
  const media = { count: 0, bytes: 0 };
  for (const content of [...objects(fields["contents"]), object(fields["systemInstruction"])])
    for (const part of objects(content?.["parts"])) look(part, media);
  for (const tool of objects(fields["tools"]))
    for (const name in tool)
      features.add(name === "functionDeclarations" ? "tools" : `hosted.${snake(name)}`);
  const config = object(fields["generationConfig"]);
  for (const modality of list(config?.["responseModalities"])) {
    const made = text(modality)?.toUpperCase();
    if (made === "AUDIO") features.add("audio");
    else if (made !== "TEXT") media.count++;
  }
  if (fields["store"] === true) features.add("state.store");
  if (fields["cachedContent"] !== undefined) features.add("state.cached_content");
  const bound = config?.["maxOutputTokens"];
  for (const hosted of hostedIn(fields)) if (hosted === "hosted.web_search") features.add(hosted);
  return {
    features: [...features],
    ...spending(fields, { output: typeof bound === "number" ? bound : undefined }),
    ...(media.count > 0 && { media }),
  };
}

function look(part: JsonObject, media: { count: number; bytes: number }): void {
  for (const name in part) {
    if (WORDS.has(name)) continue;
    const of = object(part[name]);
    if (!of) continue;
    media.count++;
    media.bytes += text(of["data"])?.length ?? 0;
  }
}
