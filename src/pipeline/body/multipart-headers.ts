// The heads of forms and of their parts, read one way only: what two readers could take for two things is refused.

/** `; name="value"`, as they follow a type. Quoted values keep their escapes. */
const PARAMETER = /[ \t]*;[ \t]*([\w!#$&^.+*-]+)=(?:"((?:[^"\\\r\n]|\\[^\r\n])*)"|([^\s;"\\]+))/y;

interface ParsedHeader {
  /** In lower case. */
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** A header such as `form-data; name="model"`. Undefined: it is not written well, or says one thing twice. */
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

/** Undefined where there is none that a form could have. */
export function boundaryOf(contentType: string): string | undefined {
  const boundary = parseHeaderValue(contentType)?.parameters.get("boundary");
  return boundary !== undefined && BOUNDARY.test(boundary) ? boundary : undefined;
}

/** How a form with this boundary is announced. */
export const multipartContentType = (boundary: string): string =>
  `multipart/form-data; boundary=${/^[\w'+\-.]+$/.test(boundary) ? boundary : `"${boundary}"`}`;
