const DOCUMENT = /^(?:application|text)\/(?:json|[^/]+\+json)$/;
const STREAM =
  /^(?:text\/event-stream|application\/(?:(?:x-)?(?:nd-?json|json-?l(?:ines)?)|(?:[^/]+\+)?json-seq|(?:x-)?stream\+json|vnd\.amazon\.eventstream))$/;

/**
 * What a media type says of a body: one JSON document, or a stream of events or lines. Undefined: it says neither, and the
 * body is what was asked for. A word such as "json" somewhere in the name decides nothing: lines of JSON have it too.
 */
export function bodyFormOf(type: string | undefined): "document" | "stream" | undefined {
  if (type === "application/json") return "document";
  const essence = (type ?? "").split(";", 1)[0]!.trim().toLowerCase();
  if (STREAM.test(essence)) return "stream";
  return DOCUMENT.test(essence) ? "document" : undefined;
}
