// Constants of Converse: its ID, finish reasons, and media formats.
import { fail, type FinishReason } from "tollgate/plugin";

export const ID = "converse";

const FINISH_REASONS = new Map<string, FinishReason>([
  ["end_turn", "stop"],
  ["stop_sequence", "stop_sequence"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "context"],
  ["tool_use", "tool_calls"],
  ["content_filtered", "filtered"],
  ["guardrail_intervened", "filtered"],
]);

/**
 * Parses a stop reason. Unknown reasons keep their name. If the model failed, an error is thrown.
 */
export function parseFinishReason(stop: string): { reason: FinishReason; detail?: string } {
  if (stop.startsWith("malformed_"))
    return fail("upstream", `The provider returned an invalid response: ${stop}.`, { code: stop });
  const reason = FINISH_REASONS.get(stop);
  if (reason === undefined) return { reason: "other", detail: stop };
  return stop === "guardrail_intervened" ? { reason, detail: stop } : { reason };
}

/** Converse's format names by media type. */
export const IMAGE_FORMATS = new Map([
  ["image/png", "png"],
  ["image/jpeg", "jpeg"],
  ["image/jpg", "jpeg"],
  ["image/gif", "gif"],
  ["image/webp", "webp"],
]);
export const DOCUMENT_FORMATS = new Map([
  ["application/pdf", "pdf"],
  ["text/csv", "csv"],
  ["text/html", "html"],
  ["text/plain", "txt"],
  ["text/markdown", "md"],
  ["application/msword", "doc"],
  ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"],
  ["application/vnd.ms-excel", "xls"],
  ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"],
]);
export const VIDEO_FORMATS = new Map([
  ["video/mp4", "mp4"],
  ["video/webm", "webm"],
  ["video/quicktime", "mov"],
  ["video/x-matroska", "mkv"],
  ["video/mpeg", "mpeg"],
]);
export const AUDIO_FORMATS = new Map([
  ["audio/mpeg", "mp3"],
  ["audio/mp3", "mp3"],
  ["audio/wav", "wav"],
  ["audio/x-wav", "wav"],
  ["audio/ogg", "ogg"],
  ["audio/flac", "flac"],
]);

export const failUnsupported = (what: string, param: string, code = "unsupported_content"): never =>
  fail("unsupported", `${what} cannot be sent to Converse.`, { param, code });
