// Reads the MCP servers of the gateway in a request of the Responses API, and converts items of
// earlier calls to the function calls that the model has seen.
import { fail, type Body, type Json, type JsonObject, type RequestHead } from "tollgate/plugin";
import { isObject } from "../../mcp/json-rpc.ts";
import {
  functionNameOf,
  isServer,
  type GatewayTools,
  type RequestedServer,
  type ToolFilter,
} from "../gateway-tools.ts";
import { APPROVAL_PREFIX, type Approvals, type PendingCall } from "./approvals.ts";

export const LIST_PREFIX = "mcpl_gw_";
export const CALL_PREFIX = "mcp_gw_";

/** A server whose name is its `server_label`. */
export interface ResponsesServer extends RequestedServer {
  readonly needsApproval: ToolFilter;
}

/** An item of the input, or a call that was approved and runs before the first turn. */
export type InputPart = { readonly item: Json } | { readonly approved: PendingCall };

/** The parts of a request that concern servers of the gateway. */
export interface ToolRequest {
  readonly servers: readonly ResponsesServer[];
  /** All other tools, with the places of the servers. */
  readonly tools: readonly (JsonObject | ResponsesServer)[];
  readonly input: readonly InputPart[];
  /** Names of servers whose tools the client has received. */
  readonly listed: ReadonlySet<string>;
}

const NO_LABEL = "Missing server_label. Set it to a name for the server.";

/** Returns undefined if the request does not concern servers of the gateway. */
export function readToolRequest(
  x: RequestHead,
  body: Body,
  of: { readonly tools: GatewayTools; readonly approvals: Approvals },
): ToolRequest | undefined {
  const given = (Array.isArray(body["tools"]) ? body["tools"] : []) as readonly JsonObject[];
  const tools = given.map((tool, at) => {
    const path = tool["type"] === "mcp" ? of.tools.pathOf(x, tool["server_url"]) : undefined;
    return path === undefined ? tool : readServer(tool, path, `tools[${at}]`);
  });
  const servers = tools.filter(isServer);
  const labels = new Set(servers.map(({ name }) => name));
  if (labels.size < servers.length)
    fail("invalid", "Two MCP servers have the same server_label.", { param: "tools" });
  const { input } = body;
  if (servers.length === 0 && !(Array.isArray(input) && input.some((one) => hasOwnId(one as Json))))
    return undefined;
  const isContinued = body["previous_response_id"] != null;
  const converted = convertInput(x, input as Json, {
    labels,
    isContinued,
    approvals: of.approvals,
  });
  return { servers, tools, ...converted };
}

function readServer(tool: JsonObject, path: string, param: string): ResponsesServer {
  const label = tool["server_label"];
  if (typeof label !== "string" || label === "" || label.length > 256)
    return fail("invalid", NO_LABEL, { param: `${param}.server_label` });
  const approval = tool["require_approval"] ?? "always";
  return {
    name: label,
    path,
    param,
    isAllowed: readAllowed(tool["allowed_tools"], `${param}.allowed_tools`),
    needsApproval: readApproval(approval, `${param}.require_approval`),
  };
}

function readAllowed(value: Json | undefined, param: string): ToolFilter {
  if (value == null) return () => true;
  if (Array.isArray(value)) return byNames(value, param);
  return readFilter(value, param);
}

function byNames(names: readonly Json[], param: string): ToolFilter {
  if (!names.every((one) => typeof one === "string"))
    fail("invalid", `${param} must contain names of tools.`, { param });
  const known = new Set(names);
  return ({ name }) => known.has(name);
}

/** Reads a filter with `tool_names` and `read_only`. A tool must match both. */
function readFilter(value: Json, param: string): ToolFilter {
  if (!isObject(value))
    return fail("invalid", `${param} must be a list of names or an object.`, { param });
  const { tool_names: names, read_only: readOnly } = value;
  const isNamed = Array.isArray(names) ? byNames(names, `${param}.tool_names`) : () => true;
  return (tool) => isNamed(tool) && (typeof readOnly !== "boolean" || tool.isReadOnly === readOnly);
}

function readApproval(value: Json, param: string): ToolFilter {
  if (value === "always") return () => true;
  if (value === "never") return () => false;
  if (!isObject(value))
    return fail("invalid", `${param} must be "always", "never", or an object.`, { param });
  const { always, never } = value;
  const isAlways = always == null ? undefined : readFilter(always, `${param}.always`);
  const isNever = never == null ? undefined : readFilter(never, `${param}.never`);
  // A tool that no filter names needs approval, unless only `always` is given.
  return (tool) => {
    if (isAlways?.(tool)) return true;
    return isNever ? !isNever(tool) : isAlways === undefined;
  };
}

const ID_OF: Readonly<Record<string, readonly [member: string, prefix: string]>> = {
  mcp_list_tools: ["id", LIST_PREFIX],
  mcp_call: ["id", CALL_PREFIX],
  mcp_approval_request: ["id", APPROVAL_PREFIX],
  mcp_approval_response: ["approval_request_id", APPROVAL_PREFIX],
};

/** Whether the gateway created the item, or the request that it answers. */
function hasOwnId(item: Json): boolean {
  if (!isObject(item)) return false;
  const [member, prefix] = ID_OF[String(item["type"])] ?? [];
  return member !== undefined && String(item[member]).startsWith(prefix!);
}

function convertInput(
  x: RequestHead,
  input: Json,
  of: {
    readonly labels: ReadonlySet<string>;
    /** Whether the provider has the items of the previous response. */
    readonly isContinued: boolean;
    readonly approvals: Approvals;
  },
): Pick<ToolRequest, "input" | "listed"> {
  if (!Array.isArray(input)) return { input: [{ item: input }], listed: new Set() };
  const items = input as readonly Json[];
  const listed = new Set<string>();
  const parts: InputPart[] = [];
  const answeredBy = (type: string) =>
    new Set(
      items.map((one) => (isObject(one) && one["type"] === type ? one["approval_request_id"] : "")),
    );
  const answered = answeredBy("mcp_approval_response");
  // These calls were made by an earlier request.
  const made = answeredBy("mcp_call");
  const called = new Set<string>();
  const decided = new Map<string, PendingCall>();
  const addCall = ({
    callId,
    server,
    name,
    args,
  }: Pick<PendingCall, "callId" | "server" | "name" | "args">) => {
    called.add(callId);
    parts.push({ item: functionCall(callId, functionNameOf(server, name), args) });
  };
  for (const [at, item] of items.entries()) {
    const isOwn =
      hasOwnId(item) ||
      (isObject(item) &&
        Object.hasOwn(ID_OF, String(item["type"])) &&
        of.labels.has(String(item["server_label"])));
    if (!isOwn || !isObject(item)) {
      parts.push({ item });
      continue;
    }
    const param = `input[${at}]`;
    switch (item["type"]) {
      case "mcp_list_tools":
        listed.add(String(item["server_label"]));
        break;
      case "mcp_call": {
        const callId = `call_${String(item["id"]).slice(0, 60)}`;
        const [server, name] = [String(item["server_label"]), String(item["name"])];
        addCall({ callId, server, name, args: String(item["arguments"] ?? "{}") });
        parts.push({ item: callOutput(callId, outputOf(item)) });
        break;
      }
      case "mcp_approval_request": {
        const id = String(item["id"]);
        if (made.has(id) || of.isContinued) break;
        const call = of.approvals.read(x, id, `${param}.id`);
        addCall(call);
        if (!answered.has(id)) parts.push({ item: callOutput(call.callId, NOT_APPROVED) });
        break;
      }
      default: {
        const id = String(item["approval_request_id"]);
        if (made.has(id)) break;
        const idParam = `${param}.approval_request_id`;
        if (decided.has(id))
          fail("invalid", "The approval request has two responses. Send one.", { param: idParam });
        const call = of.approvals.read(x, id, idParam);
        decided.set(id, call);
        if (of.isContinued && call.hasOtherCalls)
          fail("invalid", NEEDS_ALL_ITEMS, { param: "previous_response_id" });
        if (!called.has(call.callId) && !of.isContinued) addCall(call);
        const { approve, reason } = item;
        const words = typeof reason === "string" ? `${NOT_APPROVED} ${reason}` : NOT_APPROVED;
        if (approve === true) parts.push({ approved: call });
        else parts.push({ item: callOutput(call.callId, words) });
      }
    }
  }
  if (of.isContinued) assertTurnAnswered([...decided.values()], items);
  return { input: parts, listed };
}

/**
 * Fails if a call of a turn has no answer. The provider needs the results of all calls of a turn, and
 * would reject the request after an approved call was made.
 */
function assertTurnAnswered(decided: readonly PendingCall[], items: readonly Json[]): void {
  const calls = new Set(decided.map(({ callId }) => callId));
  const outputs = new Set(
    items.map((one) =>
      isObject(one) && String(one["type"]).endsWith("_output") ? one["call_id"] : undefined,
    ),
  );
  for (const { next, clientCalls } of decided) {
    if (next && !calls.has(next.callId))
      fail(
        "invalid",
        `The response also asks for approval of the tool "${next.name}" of the server "${next.server}". ` +
          "Send an mcp_approval_response for each approval request of the response, " +
          "or send all items in input instead of previous_response_id.",
        { param: "input", code: "missing_approval" },
      );
    const missing = clientCalls.find((id) => !outputs.has(id));
    if (missing !== undefined)
      fail(
        "invalid",
        `No tool output found for the call ${missing} of the same response. Send it in the same request.`,
        { param: "input", code: "missing_tool_output" },
      );
  }
}

const NEEDS_ALL_ITEMS =
  "The response also contains calls that the gateway made without approval, and the provider does " +
  "not have their results. Send all items in input instead of previous_response_id.";
const NOT_APPROVED = "The user did not approve this call.";

export const functionCall = (callId: string, name: string, args: string): JsonObject => ({
  type: "function_call",
  call_id: callId,
  name,
  arguments: args,
});

export const callOutput = (callId: string, output: string): JsonObject => ({
  type: "function_call_output",
  call_id: callId,
  output,
});

/** Returns the text that the model received for a call. */
function outputOf({ output, error }: JsonObject): string {
  if (typeof output === "string") return output;
  if (typeof error === "string") return error;
  const { message, content } = isObject(error) ? error : {};
  if (typeof message === "string") return message;
  return content === undefined ? "" : JSON.stringify(content);
}
