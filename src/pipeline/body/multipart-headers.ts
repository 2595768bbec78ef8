// Parses the headers of forms and of their parts strictly. A header that two parsers could read
// differently is rejected.

/**
 * Matches one parameter such as `; name="value"` after a media type. Quoted values keep their
 * escapes.
 */
const PARAMETER = /[ \t]*;[ \t]*([\w!#$&^.+*-]+)=(?:"((?:[^"\\\r\n]|\\[^\r\n])*)"|([^\s;"\\]+))/y;

interface ParsedHeader {
  /** In lowercase. */
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/**
 * Parses a header such as `form-data; name="model"`. Returns undefined if it is malformed or
 * repeats a parameter.
 */
export function parseHeaderValue(header: string): ParsedHeader | undefined {
  const end = header.indexOf(";");
  const type = (end < 0 ? header : header.slice(0, end)).trim().toLowerCase();
  const parameters = new Map<string, string>();
  let at = end < 0 ? header.length : header.slice(0, end).trimEnd().length;
  while (at < header.length) {
    PARAMETER.lastIndex = at;
    const found = PARAMETER.exec(header);
    if (!found) break;
    const name = found[1]!.toLowerCase();
    if (parameters.has(name)) return undefined;
    parameters.set(name, found[2] ?? found[3]!);
    at = PARAMETER.lastIndex;
  }
  return header.slice(at).trim() === "" ? { type, parameters } : undefined;
}

const BOUNDARY = /^[\w'()+,\-./:=? ]{0,69}[\w'()+,\-./:=?]$/;

export const isMultipart = (contentType: string): boolean =>
  /^multipart\/form-data[ \t]*(?:;|$)/i.test(contentType);

/** Returns the boundary of a content type, or undefined if it has no valid boundary. */
export function boundaryOf(contentType: string): string | undefined {
  const boundary = parseHeaderValue(contentType)?.parameters.get("boundary");
  return boundary !== undefined && BOUNDARY.test(boundary) ? boundary : undefined;
}

/** Returns the content type for a form with this boundary. */
export const multipartContentType = (boundary: string): string =>
  `multipart/form-data; boundary=${/^[\w'+\-.]+$/.test(boundary) ? boundary : `"${boundary}"`}`;
