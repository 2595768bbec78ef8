const DOCUMENT = /^(?:application|text)\/(?:json|[^/]+\+json)$/;
const STREAM =
  /^(?:text\/event-stream|application\/(?:(?:x-)?(?:nd-?json|json-?l(?:ines)?)|(?:[^/]+\+)?json-seq|(?:x-)?stream\+json|vnd\.amazon\.eventstream))$/;

/**
 * Returns whether a media type means one JSON document or a stream of events or lines. Undefined:
 * neither, so the body has the form that was requested. The word "json" in the name is not enough,
 * because types for lines of JSON contain it too.
 */
export function bodyFormOf(type: string | undefined): "document" | "stream" | undefined {
  if (type === "application/json") return "document";
  const essence = (type ?? "").split(";", 1)[0]!.trim().toLowerCase();
  if (STREAM.test(essence)) return "stream";
  return DOCUMENT.test(essence) ? "document" : undefined;
}
