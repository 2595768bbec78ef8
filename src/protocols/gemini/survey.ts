// One look at a body as it leaves for this wire: what it may cost, and what upstream would run or keep.
import type { Body, JsonObject } from "../../model/values.ts";
import type { Survey } from "../../plugin/protocol.ts";
import { featuresOf, hostedBy, look } from "../look/index.ts";
import { spending } from "../spending.ts";
import { list, object, objects, text } from "../json.ts";

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
  const named = look(body);
  const features = featuresOf(named);
  const media = { count: 0, bytes: 0 };
  for (const content of [...objects(fields["contents"]), object(fields["systemInstruction"])])
    for (const part of objects(content?.["parts"])) needs(part, media);
  if (objects(fields["tools"]).some((tool) => hostedBy(tool) === null)) features.add("tools");
  const config = object(fields["generationConfig"]);
  for (const modality of list(config?.["responseModalities"])) {
    const made = text(modality)?.toUpperCase();
    if (made === "AUDIO") features.add("audio");
    else if (made !== "TEXT") media.count++;
  }
  const bound = config?.["maxOutputTokens"];
  return {
    features: [...features],
    named,
    ...spending(fields, named, { output: typeof bound === "number" ? bound : undefined }),
    ...(media.count > 0 && { media }),
  };
}

function needs(part: JsonObject, media: { count: number; bytes: number }): void {
  for (const name in part) {
    if (WORDS.has(name)) continue;
    const of = object(part[name]);
    if (!of) continue;
    media.count++;
    media.bytes += text(of["data"])?.length ?? 0;
  }
}
