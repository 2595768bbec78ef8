// The loads, by name. A body has its model in front; the rest is talk.
import type { Load } from "./load.ts";
import type { Target } from "./targets.ts";

const TALK =
  "Tell me about the sea, its tides and its weather, and do not leave out the small things that live in it. ";

export interface Lane {
  readonly name: string;
  readonly about: string;
  /** Of which the cost is told. */
  readonly per: "request" | "event";
  /** Which targets; all when absent. */
  readonly only?: readonly string[];
  /** Compared with the mock itself, for what is added to a way. */
  readonly direct?: boolean;
  readonly bytes: number;
  /** The mock's part of the model's name. */
  readonly says: string;
  readonly stream: boolean;
  readonly to?: "an/";
  readonly connections: number;
  readonly ms: number;
  readonly rate?: number;
  readonly once?: boolean;
}

const json = { per: "request", stream: false, says: "bench-s2048" } as const;
const sse = { per: "event", stream: true, bytes: 1024 } as const;
const OURS = ["tollgate power", "tollgate process", "tollgate relaxed"] as const;

const paced = (streams: number, events: number): Lane => ({
  ...sse,
  name: `sse-${streams}`,
  about: `SSE, ${streams} streams, an event each 50 ms`,
  direct: true,
  says: `bench-e${events}-p50`,
  connections: streams,
  once: true,
  ms: 0,
});

/** `share`: of the time that a whole bench takes for each load. */
export function lanes(share: number): Lane[] {
  const ms = Math.round(4000 * share);
  return [
    {
      ...json,
      name: "json-1k",
      about: "JSON 1 KB, closed, 128 connections",
      bytes: 1024,
      connections: 128,
      ms,
    },
    {
      ...json,
      name: "rate-500",
      about: "JSON 1 KB, 500 a second",
      bytes: 1024,
      connections: 0,
      ms,
      rate: 500,
      direct: true,
    },
    {
      ...json,
      name: "json-16k",
      about: "JSON 16 KB, closed, 64 connections",
      bytes: 16_384,
      connections: 64,
      ms,
    },
    {
      ...json,
      name: "json-200k",
      about: "JSON 200 KB, closed, 16 connections",
      bytes: 204_800,
      connections: 16,
      ms,
    },
    {
      ...json,
      name: "json-2m",
      about: "JSON 2 MB, closed, 4 connections",
      bytes: 2_097_152,
      connections: 4,
      ms,
    },
    {
      ...sse,
      name: "sse-full",
      about: "SSE, full speed, 16 streams of 200 events",
      says: "bench-e200",
      connections: 16,
      ms,
    },
    paced(50, Math.round(80 * share)),
    paced(500, Math.round(80 * share)),
    paced(1000, Math.round(80 * share)),
    {
      ...json,
      name: "to-messages",
      about: "chat → messages, whole, 128 connections",
      bytes: 1024,
      to: "an/",
      connections: 128,
      ms,
      only: OURS,
    },
    {
      ...sse,
      name: "to-messages-sse",
      about: "chat → messages, streams of 200 events",
      says: "bench-e200",
      to: "an/",
      connections: 16,
      ms,
      only: OURS,
    },
  ];
}

export function loadOf(lane: Lane, target: Target): Load {
  const head = {
    model: `${lane.to ?? target.prefix}${lane.says}`,
    ...(lane.stream && { stream: true }),
    max_tokens: 4096,
  };
  const bare = JSON.stringify({ ...head, messages: [{ role: "user", content: "" }] }).length;
  const content = TALK.repeat(Math.ceil(lane.bytes / TALK.length)).slice(
    0,
    Math.max(8, lane.bytes - bare),
  );
  return {
    port: target.port,
    path: target.path,
    headers: target.headers,
    body: JSON.stringify({ ...head, messages: [{ role: "user", content }] }),
    connections: lane.connections,
    ms: lane.ms,
    ...(lane.rate !== undefined && { rate: lane.rate }),
    ...(lane.once && { once: true }),
  };
}
