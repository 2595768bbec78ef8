// A request in this wire's words. Times for captions, and counts for a text, come in JSON: that is asked for, and the form that the
// client wants is written here.
import type { TranscriptRequest } from "../../../model/operations/audio-requests.ts";
import type { Body } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { asObject, omitUndefined } from "../../json-values.ts";
import { ID } from "../constants.ts";

export const encodeRequest = (
  r: TranscriptRequest,
  of: Pick<CallContext, "model" | "stream">,
): Body =>
  omitUndefined({
    model: of.model,
    file: r.file,
    language: r.language,
    prompt: r.prompt,
    temperature: r.temperature,
    response_format: r.format,
    timestamp_granularities: r.granularities.length > 0 ? r.granularities : undefined,
    ...(of.stream && { stream: true }),
    ...asObject(r.ext[ID]),
  });
