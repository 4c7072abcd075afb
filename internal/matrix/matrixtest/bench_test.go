package matrixtest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"reverie/internal/matrix/matrixtest"
)

// quick is a client for measuring: no checks beyond the status.
type quick struct {
	tb         testing.TB
	url, token string
}

func quickLogin(tb testing.TB, s *matrixtest.Server, name string) quick {
	s.Account(name, password)
	q := quick{tb: tb, url: s.URL + "/_matrix/client/v3/"}
	var got struct {
		Token string `json:"access_token"`
	}
	q.do("POST", "login", `{"type":"m.login.password","user":"`+name+`","password":"`+password+`"}`, &got)
	q.token = got.Token
	return q
}

func (q quick) do(method, path, body string, into any) {
	req, err := http.NewRequest(method, q.url+path, strings.NewReader(body))
	if err != nil {
		q.tb.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+q.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		q.tb.Error(err)
		return
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		q.tb.Errorf("%s: %v %s", path, err, resp.Status)
		return
	}
	if into != nil {
		if err := json.Unmarshal(data, into); err != nil {
			q.tb.Error(err)
		}
	}
}

// BenchmarkFanOut: four people send into fifty rooms, and somebody who is in all
// of them takes it in with /sync. One operation is one event sent and received.
func BenchmarkFanOut(b *testing.B) {
	s := matrixtest.Start(b)
	you, bot := quickLogin(b, s, "you"), quickLogin(b, s, "bot")
	var rooms []string
	for range 50 {
		rooms = append(rooms, s.Room(s.Account("you", password), matrixtest.NewRoom{Join: []string{s.Account("bot", password)}}))
	}
	var first synced
	bot.do("GET", "sync", "", &first)
	b.ResetTimer()
	var senders sync.WaitGroup
	for n := range 4 {
		senders.Go(func() {
			for i := n; i < b.N; i += 4 {
				you.do("PUT", fmt.Sprintf("rooms/%s/send/m.room.message/%d", rooms[i%len(rooms)], i), `{"body":"hello","msgtype":"m.text"}`, nil)
			}
		})
	}
	filter := url.QueryEscape(`{"room":{"timeline":{"limit":100000}}}`)
	for got, since := 0, first.Next; got < b.N && !b.Failed(); {
		var page synced
		bot.do("GET", "sync?timeout=30000&filter="+filter+"&since="+since, "", &page)
		since = page.Next
		for _, j := range page.Rooms.Join {
			got += len(j.Timeline.Events)
		}
	}
	senders.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
