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

// place puts a key into the heap it belongs to now.
func (t *table) place(slot int32, now int64) {
	e := &t.entries[slot]
	busy := e.limited > now
	if e.at != none && busy != e.inBusy {
		t.takeOut(slot)
	}
	e.inBusy = busy
	h, at := t.heapOf(e)
	if e.at == none {
		*h = append(*h, due{at, slot})
		t.up(*h, len(*h)-1)
	} else if at < (*h)[e.at].at {
		(*h)[e.at].at = at
		t.up(*h, int(e.at))
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
	if e.at == none {
		return
	}
	h, _ := t.heapOf(e)
	i, last := int(e.at), len(*h)-1
	e.at = none
	moved := (*h)[last]
	*h = (*h)[:last]
	if i < last {
		(*h)[i] = moved
		t.entries[moved.slot].at = int32(i)
		t.down(*h, i)
		t.up(*h, int(t.entries[moved.slot].at))
	}
}

// nearest is the key nearest its reset that is not limited.
func (t *table) nearest(now int64) (due, bool) {
	t.settle(now)
	if len(t.idle) == 0 {
		return due{}, false
	}
	return t.idle[0], true
}

// settle moves keys that are limited no longer to the idle heap, and mends the
// roots of both.
func (t *table) settle(now int64) {
	for len(t.busy) > 0 {
		root := t.busy[0]
		e := &t.entries[root.slot]
		if e.limited > root.at {
			t.busy[0].at = e.limited
			t.down(t.busy, 0)
		} else if e.limited <= now {
			t.place(root.slot, now)
		} else {
			break
		}
	}
	for len(t.idle) > 0 {
		root := t.idle[0]
		e := &t.entries[root.slot]
		if e.expires <= root.at {
			break
		}
		t.idle[0].at = e.expires
		t.down(t.idle, 0)
	}
}

func (t *table) up(h heap, i int) {
	d := h[i]
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].at <= d.at {
			break
		}
		h[i] = h[parent]
		t.entries[h[i].slot].at = int32(i)
		i = parent
	}
	h[i] = d
	t.entries[d.slot].at = int32(i)
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
		t.entries[h[i].slot].at = int32(i)
		i = child
	}
	h[i] = d
	t.entries[d.slot].at = int32(i)
}
