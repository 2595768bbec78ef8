// A request in this wire's words.
import type { SpeechRequest } from "../../../model/sound.ts";
import type { Body } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { object, present } from "../../json.ts";
import { ID } from "../words.ts";

export const request = (r: SpeechRequest, of: Pick<CallContext, "model">): Body =>
  present({
    model: of.model,
    input: r.input,
    voice: r.voice,
    instructions: r.instructions,
    response_format: r.format,
    speed: r.speed,
    ...object(r.ext[ID]),
  });
