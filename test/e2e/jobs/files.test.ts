// The files of clients, with the SDKs of OpenAI and Anthropic: each owner sees its own files only.
import Anthropic, { toFile } from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { createHash, randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";

const [alice, bob, carol] = [mintKey().secret, mintKey().secret, mintKey().secret];
const key = (id: string, secret: string, more = "") =>
  `{ id: ${id}, digest: ${digestKey(secret)}${more} }`;
const YAML = `
frontends: [{ use: jobs, with: { max_file_mb: 4, max_account_mb: 6 } }, images]
providers: { demo: { use: demo } }
accounts: { acme: {} }
middleware:
  - use: auth
    with:
      keys: [${key("alice", alice)}, ${key("bob", bob, ", account: acme")}, ${key("carol", carol, ", account: acme")}]
`;
let gateway: InProcessGateway;
beforeAll(async () => {
  gateway = await startInProcess({ yaml: YAML });
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

const openai = (apiKey: string) =>
  new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
const anthropic = (apiKey: string) =>
  new Anthropic({ apiKey, baseURL: gateway.url, maxRetries: 0 });
const ids = async (list: AsyncIterable<{ id: string }>): Promise<string[]> => {
  const found: string[] = [];
  for await (const { id } of list) found.push(id);
  return found;
};

it("a file is created, listed, read, and deleted with OpenAI's SDK, and is encrypted on disk", async () => {
  const client = openai(alice);
  const text = '{"custom_id":"1"}\n'.repeat(10_000);
  const file = await client.files.create({
    file: await toFile(Buffer.from(text), "wörk.jsonl"),
    purpose: "batch",
    expires_after: { anchor: "created_at", seconds: 3_600 },
  });
  expect(file).toMatchObject({ object: "file", filename: "wörk.jsonl", purpose: "batch" });
  expect(file.bytes).toBe(text.length);
  expect(file.expires_at).toBe(file.created_at + 3_600);
  expect(await client.files.retrieve(file.id)).toEqual(file);
  expect(await ids(client.files.list())).toEqual([file.id]);
  expect(await ids(client.files.list({ purpose: "evals" }))).toEqual([]);
  expect(await (await client.files.content(file.id)).text()).toBe(text);
  const dir = join(gateway.stateDir, "frontends.jobs");
  const [stored] = await readdir(dir);
  expect((await readFile(join(dir, stored!))).includes("custom_id")).toBe(false);
  expect(await client.files.delete(file.id)).toEqual({
    id: file.id,
    object: "file",
    deleted: true,
  });
  expect(await readdir(dir)).toEqual([]);
  await expect(client.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 });
});

it("a base URL without the version works, and images have signed URLs on the same path", async () => {
  const client = new OpenAI({ apiKey: alice, baseURL: gateway.url, maxRetries: 0 });
  const file = await client.files.create({
    file: await toFile(Buffer.from("hi"), "a.txt"),
    purpose: "user_data",
  });
  expect(await client.files.retrieve(file.id)).toEqual(file);
  const image = { model: "demo/image", prompt: "A harbor", response_format: "url" } as const;
  const { data } = await client.images.generate(image);
  const got = await fetch(data![0]!.url!);
  expect([got.status, got.headers.get("content-type")]).toEqual([200, "image/png"]);
  expect((await fetch(`${gateway.url}/files/${file.id}?e=1&s=x`)).status).toBe(404);
  await client.files.delete(file.id);
});

it("a file is created, listed, and deleted with Anthropic's SDK", async () => {
  const client = anthropic(alice);
  const file = await client.beta.files.upload({
    file: await toFile(Buffer.from("hi"), "a.txt", { type: "text/plain" }),
  });
  expect(file).toMatchObject({
    type: "file",
    filename: "a.txt",
    mime_type: "text/plain",
    size_bytes: 2,
  });
  expect(await client.beta.files.retrieveMetadata(file.id)).toEqual(file);
  expect(await (await client.beta.files.download(file.id)).text()).toBe("hi");
  expect(await ids(client.beta.files.list())).toEqual([file.id]);
  expect(await client.beta.files.delete(file.id)).toEqual({ id: file.id, type: "file_deleted" });
});

it("pages are those of each SDK", async () => {
  const client = openai(alice);
  const made: string[] = [];
  for (let n = 0; n < 5; n++) {
    const file = await toFile(Buffer.from(String(n)), `${n}.txt`);
    made.push((await client.files.create({ file, purpose: "user_data" })).id);
  }
  expect(await ids(client.files.list({ limit: 2 }))).toEqual(made.toReversed());
  expect(await ids(client.files.list({ limit: 2, order: "asc" }))).toEqual(made);
  const list = await ids(anthropic(alice).beta.files.list({ limit: 2 }));
  expect(list).toEqual(made.toReversed().map((id) => id.replace("file-", "file_")));
  for (const id of made) await client.files.delete(id);
});

it("an account shares its files with its keys, and nobody else learns of them", async () => {
  const file = await openai(bob).files.create({
    file: await toFile(Buffer.from("secret"), "s"),
    purpose: "batch",
  });
  expect(await ids(openai(carol).files.list())).toEqual([file.id]);
  const other = openai(alice);
  expect(await ids(other.files.list())).toEqual([]);
  const unknown = `file-${randomBytes(24).toString("base64url")}`;
  const answers = [file.id, unknown].map(async (id) => {
    const error = await other.files
      .retrieve(id)
      .catch((e: unknown) => e as InstanceType<typeof OpenAI.APIError>);
    return JSON.stringify([
      (error as { status: number }).status,
      (error as { message: string }).message.replace(id, "ID"),
    ]);
  });
  const [foreign, none] = await Promise.all(answers);
  expect(foreign).toBe(none);
  expect(foreign).toContain("404");
  await expect(other.files.content(file.id)).rejects.toMatchObject({ status: 404 });
  await expect(other.files.delete(file.id)).rejects.toMatchObject({ status: 404 });
  expect(await (await openai(carol).files.content(file.id)).text()).toBe("secret");
  await openai(carol).files.delete(file.id);
});

it("a file that is too large is rejected while it arrives, and leaves nothing", async () => {
  const client = openai(alice);
  const send = (mb: number) =>
    toFile(Buffer.alloc(mb * 1024 * 1024), "big").then((file) =>
      client.files.create({ file, purpose: "batch" }),
    );
  await expect(send(5)).rejects.toMatchObject({ status: 413, code: "file_too_large" });
  expect(await readdir(join(gateway.stateDir, "frontends.jobs"))).toEqual([]);
  const first = await send(4);
  await expect(send(3)).rejects.toMatchObject({ status: 429, code: "storage_full" });
  const second = await send(2);
  for (const { id } of [first, second]) await client.files.delete(id);
});

it("parallel uploads together keep the limits of their owner, and leave nothing else", async () => {
  const client = openai(alice);
  const file = await toFile(Buffer.alloc(2 * 1024 * 1024), "f");
  const results = await Promise.allSettled(
    Array.from({ length: 5 }, () => client.files.create({ file, purpose: "batch" })),
  );
  const stored = await ids(client.files.list());
  expect(stored.length).toBeLessThanOrEqual(3);
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(stored.length);
  expect(await readdir(join(gateway.stateDir, "frontends.jobs"))).toHaveLength(stored.length);
  const uploads = await Promise.allSettled(
    Array.from({ length: 5 }, () =>
      client.uploads.create({
        bytes: 3 * 1024 * 1024,
        filename: "a",
        mime_type: "text/plain",
        purpose: "batch",
      }),
    ),
  );
  const created = uploads.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  expect(created.length * 3 + stored.length * 2).toBeLessThanOrEqual(6);
  for (const { id } of created) await client.uploads.cancel(id);
  for (const id of stored) await client.files.delete(id);
});

it("an owner may begin any number of uploads one after the other", async () => {
  const client = openai(alice);
  for (let n = 0; n < 66; n++) {
    const info = { filename: "a", mime_type: "text/plain", purpose: "batch" as const };
    await client.uploads.cancel((await client.uploads.create({ ...info, bytes: 1 })).id);
  }
});

it("parts are joined once, whatever their orders in parallel requests are", async () => {
  const client = openai(alice);
  const bytes = 200_000;
  const info = { filename: "a", mime_type: "text/plain", purpose: "batch" as const };
  const upload = await client.uploads.create({ ...info, bytes });
  const addPart = async (fill: string) => {
    const data = await toFile(Buffer.alloc(bytes / 2, fill), "part");
    return (await client.uploads.parts.create(upload.id, { data })).id;
  };
  const [a, b] = [await addPart("a"), await addPart("b")];
  const results = await Promise.allSettled(
    [
      [a, b],
      [b, a],
      [a, b],
    ].map((part_ids) => client.uploads.complete(upload.id, { part_ids })),
  );
  const done = results.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  expect(done.length).toBeGreaterThan(0);
  expect(new Set(done.map(({ file }) => file!.id)).size).toBe(1);
  const text = await (await client.files.content(done[0]!.file!.id)).text();
  expect([text.slice(0, 1), text.slice(-1)].toSorted()).toEqual(["a", "b"]);
  expect(await readdir(join(gateway.stateDir, "frontends.jobs"))).toHaveLength(1);
  await client.files.delete(done[0]!.file!.id);
});

it("invalid forms are rejected with the field, and leave nothing", async () => {
  const post = async (fields: readonly (readonly [string, string | Blob])[], headers = {}) => {
    const body = new FormData();
    for (const [name, value] of fields) body.append(name, value);
    const response = await fetch(`${gateway.url}/v1/files`, {
      method: "POST",
      headers: { authorization: `Bearer ${alice}`, ...headers },
      body,
    });
    const { error } = (await response.json()) as { error: { param?: string } };
    return [response.status, error.param];
  };
  const file = new File(["x"], "x.txt");
  expect(await post([["purpose", "batch"]])).toEqual([400, "file"]);
  expect(await post([["file", file]])).toEqual([400, "purpose"]);
  expect(
    await post([
      ["file", file],
      ["purpose", "nothing"],
    ]),
  ).toEqual([400, "purpose"]);
  expect(
    await post([
      ["file", file],
      ["file", file],
      ["purpose", "batch"],
    ]),
  ).toEqual([400, "file"]);
  expect(
    await post([
      ["file", "text"],
      ["purpose", "batch"],
    ]),
  ).toEqual([400, "file"]);
  expect(
    await post([
      ["file", file],
      ["purpose", "batch"],
      ["expires_after[anchor]", "created_at"],
      ["expires_after[seconds]", "5"],
    ]),
  ).toEqual([400, "expires_after[seconds]"]);
  expect(await readdir(join(gateway.stateDir, "frontends.jobs"))).toEqual([]);
  const typed = new File(["x"], "x.txt", { type: `a/${"b".repeat(300)}` });
  const fields = [
    ["file", typed],
    ["purpose", "batch"],
  ] as const;
  expect(await post(fields)).toEqual([400, "file"]);
  expect((await fetch(`${gateway.url}/v1/files`)).status).toBe(401);
});

it("a large file is uploaded in parts, in any order, with OpenAI's SDK", async () => {
  const client = openai(alice);
  const bytes = randomBytes(3_000_000);
  const create = (more = {}) =>
    client.uploads.create({
      bytes: bytes.length,
      filename: "big.jsonl",
      mime_type: "text/jsonl",
      purpose: "batch",
      ...more,
    });
  const upload = await create();
  expect(upload).toMatchObject({ object: "upload", status: "pending", bytes: bytes.length });
  const addPart = async (from: number, to: number) =>
    client.uploads.parts.create(upload.id, {
      data: await toFile(bytes.subarray(from, to), "part"),
    });
  const [last, first] = await Promise.all([addPart(1_000_000, 3_000_000), addPart(0, 1_000_000)]);
  await expect(addPart(0, 1)).rejects.toMatchObject({ status: 413 });
  await expect(
    openai(bob).uploads.complete(upload.id, { part_ids: [first.id, last.id] }),
  ).rejects.toMatchObject({ status: 404 });
  await expect(client.uploads.complete(upload.id, { part_ids: [first.id] })).rejects.toMatchObject({
    status: 400,
    param: "part_ids",
  });
  const partIds = [first.id, last.id];
  await expect(
    client.uploads.complete(upload.id, { part_ids: partIds, md5: "0".repeat(32) }),
  ).rejects.toMatchObject({ status: 400, param: "md5" });
  const md5 = createHash("md5").update(bytes).digest("hex");
  const done = await client.uploads.complete(upload.id, { part_ids: partIds, md5 });
  expect(done).toMatchObject({
    status: "completed",
    file: { bytes: bytes.length, purpose: "batch" },
  });
  const again = await client.uploads.complete(upload.id, { part_ids: partIds });
  expect(again.file).toEqual(done.file);
  const content = await (await client.files.content(done.file!.id)).arrayBuffer();
  expect(Buffer.from(content).equals(bytes)).toBe(true);
  expect(await readdir(join(gateway.stateDir, "frontends.jobs"))).toHaveLength(1);
  await client.files.delete(done.file!.id);
  const canceled = await client.uploads.cancel((await create()).id);
  expect(canceled.status).toBe("cancelled");
  await expect(
    client.uploads.parts.create(canceled.id, { data: await toFile(Buffer.from("x"), "part") }),
  ).rejects.toMatchObject({ status: 400, code: "upload_ended" });
  expect(await readdir(join(gateway.stateDir, "frontends.jobs"))).toEqual([]);
});

it("erasing a key erases its files", async () => {
  const client = openai(alice);
  const file = await toFile(Buffer.from("personal"), "a.txt");
  const { id } = await client.files.create({ file, purpose: "user_data" });
  await gateway.ask("erase", { key: "alice" });
  await expect(client.files.retrieve(id)).rejects.toMatchObject({ status: 404 });
  expect(await ids(client.files.list())).toEqual([]);
});
