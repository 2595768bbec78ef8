// The headers of a part of a batch. They are the first text line of its file, because they can be
// too large for the record.
import type { HeadersOut } from "tollgate/plugin";
import type { LineFile } from "./batch-record.ts";
import { readLineFile } from "./line-files.ts";
import { splitAllLines } from "./line-text.ts";
import type { Owner } from "./owned-records.ts";
import type { Storage } from "./storage.ts";

export async function readHeaders(
  storage: Storage,
  owner: Owner,
  file: LineFile,
): Promise<HeadersOut> {
  for await (const line of splitAllLines(await readLineFile(storage, owner, file)))
    return JSON.parse(line.toString()) as HeadersOut;
  return {};
}
