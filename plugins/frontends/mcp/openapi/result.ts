// Converts a response of the API into the result of a tool.
import { readBoundedBody, type Json, type JsonObject } from "tollgate/plugin";

/** Maximum length of the text of an error response that is shown. */
const MAX_ERROR_LENGTH = 4_096;

/** Result of `tools/call` in MCP. */
export interface ToolResult {
  readonly content: readonly JsonObject[];
  readonly structuredContent?: JsonObject;
  readonly isError?: boolean;
}

/** Returns the result for a response. A response that is too large becomes an error. */
export async function readToolResult(
  response: Pick<Response, "status" | "headers" | "body">,
  maxBytes: number,
): Promise<ToolResult> {
  const { status } = response;
  const type = response.headers.get("content-type")?.split(";", 1)[0]!.trim().toLowerCase() ?? "";
  const content = await readBoundedBody(response.body, maxBytes);
  if (content === undefined)
    return toolError(`The response is larger than ${maxBytes} bytes. Ask for less.`);
  if (status >= 300 && status < 400)
    return toolError(
      `The API responded with a redirect (status ${status}), which is not followed.`,
    );
  if (status >= 400) {
    const text = isText(type) ? content.toString("utf8").slice(0, MAX_ERROR_LENGTH) : "";
    return toolError(`The API responded with status ${status}.${text === "" ? "" : `\n${text}`}`);
  }
  if (content.length === 0) return textResult(`The API responded with status ${status}.`);
  if (/^(?:image|audio)\/[\w.+-]+$/.test(type) && type !== "image/svg+xml")
    return {
      content: [{ type: type.split("/")[0]!, data: content.toString("base64"), mimeType: type }],
    };
  if (!isText(type))
    return toolError(`The API responded with ${type || "unknown content"}, which is not text.`);
  const text = content.toString("utf8");
  const parsed = isJson(type) ? parseJson(text) : undefined;
  return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)
    ? { ...textResult(text), structuredContent: parsed as JsonObject }
    : textResult(text);
}

/** Returns a result that reports an error to the model. */
export const toolError = (message: string): ToolResult => ({
  ...textResult(message),
  isError: true,
});

const textResult = (text: string): ToolResult => ({ content: [{ type: "text", text }] });

const isJson = (type: string): boolean => /^application\/(?:[\w.+-]+\+)?json$/.test(type);

const isText = (type: string): boolean =>
  isJson(type) ||
  /^text\/|^application\/(?:[\w.+-]+\+)?(?:xml|yaml|x-ndjson|javascript)$|\+xml$/.test(type);

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
