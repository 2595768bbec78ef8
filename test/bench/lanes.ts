// The loads, by name. A body starts with its model, and the rest is conversation.
import type { Load } from "./load.ts";
import type { Target } from "./targets.ts";

const TALK =
  "Tell me about the sea, its tides and its weather, and do not leave out the small things that live in it. ";

/** Protocol of the client. Default: chat completions. */
export type Wire = "messages" | "responses";

const PATHS: Readonly<Record<Wire, string>> = {
  messages: "/v1/messages",
  responses: "/v1/responses",
};

/** Gateways that have an upstream of the same protocol. */
const UPSTREAMS: Readonly<Record<Wire, string>> = { messages: "an/", responses: "re/" };

export interface Lane {
  readonly name: string;
  readonly about: string;
  /** Targets whose cost is reported. */
  readonly per: "request" | "event";
  /** Gateways of this project that take part. Every other target always takes part. */
  readonly ours: readonly string[];
  /** Compared with the mock itself, for the added cost. */
  readonly direct?: boolean;
  readonly bytes: number;
  /** The mock's part of the model's name. */
  readonly says: string;
  /** The whole body. Default: a conversation. */
  readonly body?: string;
  readonly stream: boolean;
  readonly wire?: Wire;
  readonly connections: number;
  readonly ms: number;
  /** Ends after this number of requests, if that is earlier. */
  readonly most?: number;
  readonly rate?: number;
  readonly once?: boolean;
  /** A small number suffices, because each takes long and has thousands of events. */
  readonly mostRounds?: number;
}

/** Number of events of a watched stream, and duration of the load. */
export interface Length {
  readonly ms: number;
  readonly events: number;
}

const power = ["tollgate power"];
const all = ["tollgate power", "tollgate process", "tollgate relaxed", "tollgate memory"];

const json = (name: string, bytes: number, connections: number, size: string) => ({
  name,
  about: `JSON ${size}, closed loop, ${connections} connections`,
  per: "request" as const,
  stream: false,
  says: "bench-s2048",
  ours: power,
  bytes,
  connections,
});

const sse = { per: "event", stream: true, bytes: 1024, ours: power } as const;

export function lanes({ ms, events }: Length): Lane[] {
  const paced = (streams: number): Lane => ({
    ...sse,
    name: `sse-${streams}`,
    about: `SSE, ${streams} streams, an event each 50 ms`,
    direct: true,
    says: `bench-e${events}-p50`,
    connections: streams,
    once: true,
    mostRounds: 3,
    ms: 0,
  });
  const full = (name: string, wire?: Wire): Lane => ({
    ...sse,
    name,
    about: `SSE at full speed${wire ? `, ${wire}` : ""}, 16 streams of 200 events`,
    says: "bench-e200",
    connections: 16,
    ms,
    ...(wire && { wire }),
  });
  // Streaming and non-streaming responses in turn: the process has served both before each lane.
  return [
    { ...json("json-1k", 1024, 128, "1 KB"), ours: all, ms },
    full("sse-full"),
    { ...json("json-32", 1024, 32, "1 KB"), ours: all, ms },
    full("sse-messages", "messages"),
    {
      ...json("rate-500", 1024, 0, "1 KB"),
      about: "JSON 1 KB, open loop, 500 a second",
      ours: all,
      ms,
      rate: 500,
      direct: true,
    },
    full("sse-responses", "responses"),
    { ...json("json-16k", 16_384, 64, "16 KB"), ms },
    {
      ...sse,
      name: "sse-first",
      about: "SSE, the way to the first event, open loop, 100 streams a second",
      ours: all,
      says: "bench-e4",
      connections: 0,
      ms,
      rate: 100,
      direct: true,
    },
    { ...json("json-200k", 204_800, 16, "200 KB"), ms },
    paced(50),
    { ...json("json-2m", 2_097_152, 4, "2 MB"), ms },
    paced(500),
    paced(1000),
  ];
}

/** Returns a lane of the list above by its name. */
export const laneOf = (name: string, length: Length): Lane =>
  lanes(length).find((lane) => lane.name === name)!;

/** Whether the load consists of one type of request. */
export const isLane = (name: string, length: Length): boolean =>
  lanes(length).some((lane) => lane.name === name);

/** The rest of the body, and the form of a conversation in it. */
function bodyOf(lane: Lane, model: string, content: string): string {
  const head = { model, ...(lane.stream && { stream: true }) };
  return JSON.stringify(
    lane.wire === "responses"
      ? { ...head, max_output_tokens: 4096, input: content }
      : { ...head, max_tokens: 4096, messages: [{ role: "user", content }] },
  );
}

/** In the header that Messages clients use. */
const keyed = ({ authorization }: Target["headers"]): Target["headers"] => ({
  "anthropic-version": "2023-06-01",
  ...(authorization !== undefined && { "x-api-key": authorization.replace(/^Bearer /, "") }),
});

export function loadOf(lane: Lane, target: Target): Load {
  const { wire } = lane;
  return {
    port: target.port,
    path: wire ? PATHS[wire] : target.path,
    headers: wire === "messages" ? keyed(target.headers) : target.headers,
    body: lane.body ?? conversationOf(lane, target),
    connections: lane.connections,
    ms: lane.ms,
    ...(lane.most !== undefined && { most: lane.most }),
    ...(lane.rate !== undefined && { rate: lane.rate }),
    ...(lane.once && { once: true }),
  };
}

/** A conversation of the lane's size. */
function conversationOf(lane: Lane, target: Target): string {
  const { wire } = lane;
  const prefix = wire && target.prefix !== "" ? UPSTREAMS[wire] : target.prefix;
  const model = `${prefix}${lane.says}`;
  const bare = bodyOf(lane, model, "").length;
  const content = TALK.repeat(Math.ceil(lane.bytes / TALK.length)).slice(
    0,
    Math.max(8, lane.bytes - bare),
  );
  return bodyOf(lane, model, content);
}
