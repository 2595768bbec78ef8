// Encodes a request in this protocol.
import type { SpeechRequest } from "../../../model/operations/audio-requests.ts";
import type { Body } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { asObject, omitUndefined } from "../../json-values.ts";
import { ID } from "../constants.ts";

export const encodeRequest = (r: SpeechRequest, of: Pick<CallContext, "model">): Body =>
  omitUndefined({
    model: of.model,
    input: r.input,
    voice: r.voice,
    instructions: r.instructions,
    response_format: r.format,
    speed: r.speed,
    ...asObject(r.ext[ID]),
  });
