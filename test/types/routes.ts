// What a route may be: how its body comes, what is spoken at it, and what it may answer.
import {
  chatOperation,
  defineFrontend,
  isFilePart,
  type Body,
  type BodyForm,
  type FilePart,
  type Protocol,
  type Route,
  type RouteInput,
  type RouteResponse,
  type ServerHalf,
} from "tollgate/plugin";
import { is, type Same } from "./same.ts";

declare const server: ServerHalf<"chat">;
const one: Protocol<"chat"> = { id: "one", operationSpec: chatOperation, server };
const two: Protocol<"chat"> = { id: "two", operationSpec: chatOperation, server };

// ── a route that walks ──
export const walks: readonly Route[] = [
  { method: "POST", path: "/a", actionType: "generate", body: "multipart" },
  { method: "POST", path: "/b", actionType: "generate", body: "either" },
  {
    method: "POST",
    path: "/c",
    actionType: "generate",
    protocols: [two],
    readInput: (_x, { model }) => ({ model: String(model), protocol: two }),
  },
  // @ts-expect-error  there is no such form
  { method: "POST", path: "/d", actionType: "generate", body: "xml" },
  // @ts-expect-error  bytes mean nothing to a protocol
  { method: "POST", path: "/e", actionType: "generate", body: "bytes" },
  // @ts-expect-error  several protocols are a list
  { method: "POST", path: "/f", actionType: "generate", protocols: two },
];
// @ts-expect-error  a protocol, and not its name
export const named: RouteInput = { model: "m", protocol: "two" };
export const form: BodyForm = "either";

// ── what stands in a form ──
export function reads(body: Body): FilePart | undefined {
  const { file } = body;
  // @ts-expect-error  it may be text, a number, a list, or absent
  const unseen: FilePart = file;
  return isFilePart(file) ? file : unseen;
}

// ── a route that is served ──
export const served = defineFrontend({
  api: 1,
  name: "x",
  summary: "x",
  setup: () => ({
    protocol: one,
    routes: [
      { method: "GET", path: "/a", handle: () => ({ status: 204 }) },
      {
        method: "POST",
        path: "/b",
        body: "json",
        handle(_x, body) {
          is<Same<typeof body, Body>>();
          return { status: 200, body: Object.keys(body) };
        },
      },
      {
        method: "POST",
        path: "/c",
        body: "bytes",
        handle(_x, body) {
          is<Same<typeof body, Buffer>>();
          return { status: 200, body };
        },
      },
      {
        method: "POST",
        path: "/d",
        allowUnauthenticated: true,
        body: "either",
        async handle(x, { file }) {
          return { status: 200, body: isFilePart(file) ? file.data : x.path };
        },
      },
      {
        method: "GET",
        path: "/e",
        handle: () => ({
          status: 200,
          headers: { "content-type": "text/plain" },
          body: (async function* () {
            yield "a";
            yield Buffer.from("b");
            yield new Uint8Array(1);
          })(),
        }),
      },
    ],
  }),
});
export const unread: readonly Route[] = [
  // @ts-expect-error  no body is read where none was asked for
  { method: "POST", path: "/a", handle: (_x, body: Body) => ({ status: 200, body: { ...body } }) },
  // @ts-expect-error  bytes are not fields
  { method: "POST", path: "/b", body: "bytes", handle: (_x, body: Body) => ({ status: +!body }) },
];
export const lists: RouteResponse = {
  status: 200,
  // @ts-expect-error  pieces are text or bytes
  body: (async function* () {
    yield { a: 1 };
  })(),
};
