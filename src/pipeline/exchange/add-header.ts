import { fail } from "../../model/error.ts";

/** What may stand in a header line; a value with anything else would be an injection. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** The same with one more, for the client. */
export function addHeader(
  headers: Map<string, string> | undefined,
  name: string,
  value: string,
): Map<string, string> {
  if (!HEADER_NAME.test(name)) fail("internal", "A header has a name that cannot be sent.");
  if (!HEADER_VALUE.test(value)) fail("internal", `A value for ${name} cannot stand in a header.`);
  return (headers ?? new Map<string, string>()).set(name.toLowerCase(), value);
}
