// Keys of gateway.yaml that have gone: understood for a year on, with a warning that has the replacement at the line where the old one stands.
import { expect, it } from "vitest";
import { loadConfig } from "../../../src/config/load-config.ts";
import { RETIRED_KEYS, type RetiredKey } from "../../../src/config/retired-keys.ts";
import { load } from "./stubs.ts";

const GONE: readonly RetiredKey[] = [
  { from: "/drain_for", to: "/drain/for", since: "2027-01-31", until: "2028-02-01" },
  { from: "/listener", to: "/listen", since: "2027-01-31", until: "2028-02-01" },
];

const loaded = (text: string, retired = GONE) =>
  loadConfig("/etc/tollgate/gateway.yaml", {
    env: { PORT: "9001" },
    loadPlugin: load,
    textOverride: text,
    retiredKeys: retired,
  });

it("the old key does what the new one does, and a warning at its line says which that is", async () => {
  const old = await loaded(
    'listener: { host: 127.0.0.1, port: "${env:PORT}" }\ndrain_for: 7s\nproviders: {}\n',
  );
  const now = await loaded(
    'listen: { host: 127.0.0.1, port: "${env:PORT}" }\ndrain: { for: 7s }\nproviders: {}\n',
  );
  expect(now.problems.filter(({ id }) => id === "config/retired-key")).toEqual([]);
  expect(old.config?.listen).toEqual(now.config?.listen);
  expect(old.config?.shutdownTimeoutMs).toBe(7_000);
  const told = old.problems.filter(({ id }) => id === "config/retired-key");
  expect(told.map(({ severity, line, message }) => [severity, line, message])).toEqual([
    ["warning", 1, '"listener" is called "listen" now'],
    ["warning", 2, '"drain_for" is called "drain.for" now'],
  ]);
  expect(told[1]?.hint).toBe("write drain.for: the old key is understood until 2028-02-01");
});

it("what is wrong with its value is told at the line where it stands", async () => {
  const { problems } = await loaded("providers: {}\ndrain_for: soon\n");
  expect(problems.find(({ severity }) => severity === "error")).toMatchObject({ line: 2 });
});

it("both at once is an error, and one that nobody promised is an unknown key", async () => {
  const { problems } = await loaded("drain_for: 7s\ndrain: { for: 8s }\nproviders: {}\n");
  expect(problems).toContainEqual(
    expect.objectContaining({ id: "config/retired-key", severity: "error", line: 1 }),
  );
  const unknown = await loaded("drain_for: 7s\nproviders: {}\n", []);
  expect(unknown.problems.map(({ id }) => id)).toContain("config/unknown-key");
});

it("each that has gone has its year, and its replacement is a key that there is", async () => {
  for (const { from, to, since, until } of RETIRED_KEYS) {
    expect(Date.parse(until) - Date.parse(since)).toBeGreaterThanOrEqual(365 * 86_400_000);
    const at = (pointer: string) =>
      pointer
        .split("/")
        .slice(1)
        .reduceRight<unknown>((value, key) => ({ [key]: value }), 1);
    const { problems } = await loaded(JSON.stringify(at(to)), []);
    expect(problems.map(({ id }) => id)).not.toContain("config/unknown-key");
    expect(from).not.toBe(to);
  }
});
