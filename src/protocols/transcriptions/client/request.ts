// Encodes a request in this protocol. Only JSON contains the timestamps for captions and the usage
// counts for text. So the gateway requests JSON and writes the format that the client requested.
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
