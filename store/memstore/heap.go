package memstore

// due is a key in a heap: no earlier than at something is to be done with it.
type due struct {
	at   int64
	slot int32
}

// heap has the key that is due first at its root. A key whose time moves on, as
// it does with each charge, is left where it is: its place is mended when it
// comes to the root. So a charge on a key that is kept costs no heap work.
type heap []due

// batch is the most heap work done under locks at a time, in keys.
const batch = 1024

// place puts a key into the heap it belongs to now.
func (t *table) place(slot int32, now int64) {
	e := &t.entries[slot]
	busy := e.limited > now
	if e.pos != none && busy != e.inBusy {
		t.takeOut(slot)
	}
	e.inBusy = busy
	h, at := t.heapOf(e)
	if e.pos == none {
		*h = append(*h, due{at, slot})
		t.up(*h, len(*h)-1)
	} else if at < (*h)[e.pos].at {
		(*h)[e.pos].at = at
		t.up(*h, int(e.pos))
	}
}

// heapOf is the heap that e belongs to and its time there.
func (t *table) heapOf(e *entry) (*heap, int64) {
	if e.inBusy {
		return &t.busy, e.limited
	}
	return &t.idle, e.expires
}

// takeOut takes a key out of its heap, if it is in one.
func (t *table) takeOut(slot int32) {
	e := &t.entries[slot]
	if e.pos == none {
		return
	}
	h, _ := t.heapOf(e)
	i, last := int(e.pos), len(*h)-1
	e.pos = none
	moved := (*h)[last]
	*h = (*h)[:last]
	if i < last {
		(*h)[i] = moved
		t.entries[moved.slot].pos = int32(i)
		t.down(*h, i)
		t.up(*h, int(t.entries[moved.slot].pos))
	}
}

// nearest is the key nearest its reset that is not limited. It stops mending
// after a batch, for the locks are held: the key is not limited then either, but
// another may be nearer its reset.
func (t *table) nearest(now int64) (due, bool) {
	for n := 0; n < batch || !t.ready(now); n++ {
		if !t.mend(now) {
			break
		}
	}
	if len(t.idle) == 0 {
		return due{}, false
	}
	return t.idle[0], true
}

// ready tells whether the root of the idle heap is a key that may go.
func (t *table) ready(now int64) bool {
	return len(t.idle) > 0 && t.entries[t.idle[0].slot].limited <= now
}

// mend does one step towards heaps whose roots are what they say, and tells
// whether there was one to do.
func (t *table) mend(now int64) bool {
	if len(t.idle) > 0 {
		if slot := t.idle[0].slot; t.entries[slot].limited > now { // again: the clock stepped back
			t.place(slot, now)
			return true
		}
	}
	if len(t.busy) > 0 {
		slot := t.busy[0].slot
		if e := &t.entries[slot]; e.limited <= now {
			t.place(slot, now)
			return true
		} else if e.limited > t.busy[0].at {
			t.busy[0].at = e.limited
			t.down(t.busy, 0)
			return true
		}
	}
	if len(t.idle) > 0 {
		if e := &t.entries[t.idle[0].slot]; e.expires > t.idle[0].at {
			t.idle[0].at = e.expires
			t.down(t.idle, 0)
			return true
		}
	}
	return false
}

func (t *table) up(h heap, i int) {
	d := h[i]
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].at <= d.at {
			break
		}
		h[i] = h[parent]
		t.entries[h[i].slot].pos = int32(i)
		i = parent
	}
	h[i] = d
	t.entries[d.slot].pos = int32(i)
}

func (t *table) down(h heap, i int) {
	d := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[right].at < h[child].at {
			child = right
		}
		if d.at <= h[child].at {
			break
		}
		h[i] = h[child]
		t.entries[h[i].slot].pos = int32(i)
		i = child
	}
	h[i] = d
	t.entries[d.slot].pos = int32(i)
}
