// A client's words in the common vocabulary.
import type { SpeechRequest } from "../../../model/sound.ts";
import type { Body } from "../../../model/values.ts";
import { number, object, present, text } from "../../json.ts";
import { unknownIn } from "../../strangers.ts";
import { ID, knows, STREAM_FORMAT } from "../words.ts";

export function request(body: Body): SpeechRequest {
  const events = text(body[STREAM_FORMAT]);
  return present({
    kind: "speech" as const,
    model: text(body["model"]) ?? "",
    // It is read as it comes, whether or not a client says so.
    stream: true,
    input: text(body["input"]) ?? "",
    voice: text(body["voice"]) ?? object(body["voice"]),
    instructions: text(body["instructions"]),
    format: text(body["response_format"]),
    speed: number(body["speed"]),
    rest: unknownIn(body, (name) => body[name] === null || knows(name)),
    ext: events === undefined ? {} : { [ID]: { [STREAM_FORMAT]: events } },
  });
}
