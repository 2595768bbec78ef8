/** Its first block says the rate in 20 bits and the samples in 36; no samples: its encoder did not know. */
export function secondsOfFlac(file: Buffer, from: number): number | undefined {
  const at = from + 8;
  if (at + 18 > file.length || (file[from + 4]! & 127) !== 0) return undefined;
  const rate = file.readUIntBE(at + 10, 3) >>> 4;
  const samples = (file[at + 13]! & 15) * 2 ** 32 + file.readUInt32BE(at + 14);
  return rate === 0 || samples === 0 ? undefined : samples / rate;
}
