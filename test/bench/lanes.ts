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
  /** Which of our own gates; every other target always takes part. */
  readonly ours: readonly string[];
  /** Compared with the mock itself, for what is added to a way. */
  readonly direct?: boolean;
  readonly bytes: number;
  /** The mock's part of the model's name. */
  readonly says: string;
  readonly stream: boolean;
  readonly connections: number;
  readonly ms: number;
  /** It ends with so many requests, if that is sooner. */
  readonly most?: number;
  readonly rate?: number;
  readonly once?: boolean;
  /** Enough of them: each takes long, and holds thousands of events. */
  readonly mostRounds?: number;
}

/** How long a load is, and of how many events a stream that is watched. */
export interface Length {
  readonly ms: number;
  readonly events: number;
}

const power = ["tollgate power"];
const all = ["tollgate power", "tollgate process", "tollgate relaxed"];

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
  return [
    { ...json("json-1k", 1024, 128, "1 KB"), ours: all, ms },
    {
      ...json("rate-500", 1024, 0, "1 KB"),
      about: "JSON 1 KB, open loop, 500 a second",
      ours: all,
      ms,
      rate: 500,
      direct: true,
    },
    { ...json("json-16k", 16_384, 64, "16 KB"), ms },
    { ...json("json-200k", 204_800, 16, "200 KB"), ms },
    { ...json("json-2m", 2_097_152, 4, "2 MB"), ms },
    {
      ...sse,
      name: "sse-full",
      about: "SSE at full speed, 16 streams of 200 events",
      says: "bench-e200",
      connections: 16,
      ms,
    },
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
    paced(50),
    paced(500),
    paced(1000),
  ];
}

/** A lane by its name; the list above has it. */
export const laneOf = (name: string, length: Length): Lane =>
  lanes(length).find((lane) => lane.name === name)!;

export function loadOf(lane: Lane, target: Target): Load {
  const head = {
    model: `${target.prefix}${lane.says}`,
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
    ...(lane.most !== undefined && { most: lane.most }),
    ...(lane.rate !== undefined && { rate: lane.rate }),
    ...(lane.once && { once: true }),
  };
}
