"use strict";
// The page's data: deflated, in base64, in <script> elements of their own.  output/page/packing.py makes it.

async function inflated(id) {
  const coded = atob(byId(id).textContent.trim());
  const bytes = new Uint8Array(coded.length);
  for (let at = 0; at < coded.length; at++) bytes[at] = coded.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const plain = new Uint8Array(await new Response(stream).arrayBuffer());
  const head = new DataView(plain.buffer).getUint32(0, true);
  return { head: JSON.parse(new TextDecoder().decode(plain.subarray(4, 4 + head))), rest: plain.subarray(4 + head) };
}

/** Tables of columns: {kernels: {rows, start, dur, …}, …}; -1 stands for no value. */
function unpacked({ head, rest }) {
  let from = 0;
  const tables = {};
  for (const name in head) {
    const { rows, columns } = head[name], table = tables[name] = { rows };
    for (const [column, planes, differences, wide] of columns) {
      const values = wide ? new Float64Array(rows) : new Int32Array(rows);
      const places = Array.from({ length: planes }, (_, at) => rest.subarray(from + at * rows, from + (at + 1) * rows));
      from += planes * rows;
      let before = 0;
      for (let row = 0; row < rows; row++) {
        let folded = 0;
        for (let at = planes - 1; at >= 0; at--) folded = folded * 256 + places[at][row];
        const value = folded % 2 ? -(folded + 1) / 2 : folded / 2;
        before = differences ? before + value : value;
        values[row] = before;
      }
      table[column] = values;
    }
  }
  return tables;
}
