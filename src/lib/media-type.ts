const DOCUMENT = /^(?:application|text)\/(?:json|[^/]+\+json)$/;
const STREAM =
  /^(?:text\/event-stream|application\/(?:(?:x-)?(?:nd-?json|json-?l(?:ines)?)|(?:[^/]+\+)?json-seq|(?:x-)?stream\+json|vnd\.amazon\.eventstream))$/;

/**
 * Returns the form of the body that a media type implies: one JSON document, or a stream of events
 * or lines. Undefined if it implies neither. The body then has the form that was requested. The
 * word "json" in the type is not sufficient, because types for lines of JSON also contain it.
 */
export function bodyFormOf(type: string | undefined): "document" | "stream" | undefined {
  if (type === "application/json") return "document";
  const essence = (type ?? "").split(";", 1)[0]!.trim().toLowerCase();
  if (STREAM.test(essence)) return "stream";
  return DOCUMENT.test(essence) ? "document" : undefined;
}
