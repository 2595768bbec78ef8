// Names of tools, prompts, and resources in scopes of several servers.
import { hash } from "node:crypto";
import type { Json, JsonObject } from "tollgate/plugin";
import { isObject } from "./json-rpc.ts";
import type { ListKind, ServerItem } from "./tool-server.ts";

const NAME_SEPARATOR = "__";
const URI_SEPARATOR = "+";
/** Longest name of a tool that the APIs of models accept. */
const MAX_NAME_LENGTH = 64;
const HASH_LENGTH = 8;

/** Returns the name or URI of an entry in scopes of several servers. */
export function publicName(server: string, kind: ListKind, key: string): string {
  if (kind === "resources" || kind === "resourceTemplates")
    return `${server}${URI_SEPARATOR}${key}`;
  const name = `${server}${NAME_SEPARATOR}${key}`;
  if (name.length <= MAX_NAME_LENGTH) return name;
  const digest = hash("sha256", name).slice(0, HASH_LENGTH);
  return `${name.slice(0, MAX_NAME_LENGTH - HASH_LENGTH - 1)}_${digest}`;
}

/** Returns the server of a name or URI in a scope of several servers. Names of servers have no "_". */
export function serverOf(name: string, isUri: boolean): string | undefined {
  const at = name.indexOf(isUri ? URI_SEPARATOR : NAME_SEPARATOR);
  return at > 0 ? name.slice(0, at) : undefined;
}

/** Returns the server's own URI. */
export const ownUri = (server: string, uri: string): string =>
  uri.slice(server.length + URI_SEPARATOR.length);

/** Returns an entry with its public name. */
export function withPublicName(server: string, kind: ListKind, item: ServerItem): ServerItem {
  if (kind === "resources") return { ...item, uri: publicName(server, kind, String(item["uri"])) };
  if (kind === "resourceTemplates")
    return { ...item, uriTemplate: publicName(server, kind, String(item["uriTemplate"])) };
  return { ...item, name: publicName(server, kind, String(item["name"])) };
}

/** Returns the content of a result with public URIs. */
export function withPublicUris(server: string, result: JsonObject): JsonObject {
  const rename = (uri: Json | undefined): string => `${server}${URI_SEPARATOR}${String(uri)}`;
  const contentOf = (part: Json): Json => {
    if (!isObject(part)) return part;
    if (part["type"] === "resource_link") return { ...part, uri: rename(part["uri"]) };
    const { resource } = part;
    if (part["type"] === "resource" && isObject(resource))
      return { ...part, resource: { ...resource, uri: rename(resource["uri"]) } };
    return part;
  };
  const { content, contents, messages } = result;
  return {
    ...result,
    ...(Array.isArray(content) && { content: content.map(contentOf) }),
    ...(Array.isArray(contents) && {
      contents: contents.map((one) => (isObject(one) ? { ...one, uri: rename(one["uri"]) } : one)),
    }),
    ...(Array.isArray(messages) && {
      messages: messages.map((one) =>
        isObject(one) && one["content"] !== undefined
          ? { ...one, content: contentOf(one["content"]) }
          : one,
      ),
    }),
  };
}
