// Routes of /v1/files. One path serves the SDKs of OpenAI and Anthropic.
import type { FormPart, RequestHead, Route } from "tollgate/plugin";
import { openaiPaths } from "../../route-paths.ts";
import { anthropicFiles, openaiFiles, type FileFormat } from "./file-formats.ts";
import type { FileService } from "../file-service.ts";
import { readUpload } from "../file-upload.ts";
import { ownerOf } from "../owned-records.ts";
import {
  idOf,
  isAnthropicClient,
  ok,
  readFormFields,
  rejectZeroRetention,
} from "./request-fields.ts";
import type { FileInfo } from "../storage.ts";

const formatFor = (x: RequestHead): FileFormat =>
  isAnthropicClient(x) ? anthropicFiles : openaiFiles;

export function fileRoutes(files: FileService): readonly Route[] {
  const [all, one] = [openaiPaths("/files"), openaiPaths("/files/:id")];
  return [
    {
      method: "POST",
      path: all,
      body: "parts",
      async handle(x: RequestHead, parts: AsyncIterable<FormPart>) {
        rejectZeroRetention(x);
        using file = await files.begin(ownerOf(x));
        const upload = await readUpload(parts, "file", file);
        const { filename, mime, bytes } = upload;
        const createdAt = Date.now();
        const readInfo = (): FileInfo => {
          if (isAnthropicClient(x)) return { filename, mime, purpose: "user_data" };
          const { purpose, keepMs } = readFormFields(upload.fields);
          const expiresAt = keepMs === undefined ? undefined : createdAt + keepMs;
          return { filename, mime, purpose, expiresAt };
        };
        return await discardOnError(file, async () =>
          ok(formatFor(x).encode(await file.finish(bytes, createdAt, readInfo()))),
        );
      },
    },
    {
      method: "GET",
      path: all,
      handle: async (x) => ok(formatFor(x).encodePage(await files.list(ownerOf(x)), x)),
    },
    {
      method: "GET",
      path: one,
      handle: async (x) => ok(formatFor(x).encode(await files.find(ownerOf(x), idOf(x)))),
    },
    {
      method: "DELETE",
      path: one,
      async handle(x) {
        const file = await files.find(ownerOf(x), idOf(x));
        await files.delete(file);
        return ok(formatFor(x).encodeDeleted(file.id));
      },
    },
    {
      method: "GET",
      path: one.map((path) => `${path}/content`),
      async handle(x) {
        const owner = ownerOf(x);
        const file = await files.find(owner, idOf(x));
        return {
          status: 200,
          headers: {
            "content-type": "application/octet-stream",
            "content-length": String(file.bytes),
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
          },
          body: await files.read(owner, file),
        };
      },
    },
  ];
}

/** Deletes content whose record cannot be written. */
export async function discardOnError<T>(
  content: { discard(): Promise<void> },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await content.discard();
    throw error;
  }
}
